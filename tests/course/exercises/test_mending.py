"""Loops to mend: right ones pass, wrong ones get a reason, and the right loop trains as plain PyTorch does."""

from __future__ import annotations

import linecache
from typing import Any

import pytest
import torch
from process_state import nothing_left
from torch import nn

from gradlab import tasks
from gradlab.course.exercises import exercise, exercise_texts
from gradlab.course.exercises.checking import stub_of
from gradlab.course.exercises.mending import LoopRun, Mending

pytestmark = pytest.mark.slow

MENDINGS = [name for name, it in exercise_texts().items() if isinstance(it.definition, Mending)]
CLEAR, BACKWARD, STEP = "        optimizer.zero_grad()\n", "        loss.backward()\n", "        optimizer.step()\n"
CODES = {
    "mend_the_flat_loss": ["zero-grad-between-backward-and-step"],
    "mend_four_times_the_work": ["zero-grad-in-micro-batch"],
    "mend_killed_at_night": ["graph-retained-memory-leak"],
    "mend_the_swinging_loss": ["missing-zero-grad"],
    "mend_learned_by_heart": ["eval-mode-left-on"],
    "mended_head": ["graph-retained-memory-leak", "params-missing-from-optimizer", "scheduler-before-optimizer"],
}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def loop_of(text: str, edit: str = "") -> Any:
    """The loop of a text, in a file whose lines the doctor can read, with a replacement "old => new"."""
    if edit:
        old, new = edit.split(" => ")
        assert old in text, old
        text = text.replace(old, new)
    file, names = f"<loop {len(linecache.cache)}>", {"torch": torch, "nn": nn}
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    exec(compile(text, file, "exec"), names)
    return names[text.partition("(")[0].removeprefix("def ")]


@pytest.mark.parametrize("name", MENDINGS)
def test_the_original_loop_is_shown_with_its_findings(name: str) -> None:
    it = exercise(name)
    verdict = it.check(loop_of(it.stub))
    assert verdict.state == "not attempted"
    assert sorted(finding.code for finding in verdict.report) == CODES[name]
    page = verdict._repr_mimebundle_()["text/html"]
    assert page.count("<img") == 1
    assert CODES[name][0] in page


@pytest.mark.parametrize("name", MENDINGS)
def test_the_solution_passes(name: str) -> None:
    verdict = exercise(name).check(stub_of(exercise(name).solution))
    assert verdict, verdict
    assert "as it should, and `watch` finds nothing" in verdict.remark


OTHER_RIGHT = [
    ("mend_the_flat_loss", f"{CLEAR}{STEP} => {STEP}{CLEAR}"),
    ("mend_four_times_the_work", f"{CLEAR} =>         if i % 4 == 0:\n    {CLEAR}"),
    ("mend_killed_at_night", "+= loss\n => += loss.detach()\n"),
    ("mend_the_swinging_loss", f"{BACKWARD} =>         model.zero_grad(set_to_none=False)\n{BACKWARD}"),
    ("mend_learned_by_heart", "  # the validation\n => \n        model.train()\n"),
]


@pytest.mark.parametrize(("name", "edit"), OTHER_RIGHT)
def test_other_right_loops_pass(name: str, edit: str) -> None:
    verdict = exercise(name).check(loop_of(exercise(name).stub, edit))
    assert verdict, verdict


TAKEN_OVER = [  # the original loop, with a change that does not mend it
    ("mend_the_flat_loss", "cleared after backward() and before step()", "lr=0.2 => lr=10.0"),
    ("mend_four_times_the_work", "cleared inside a window", " / 4\n => \n"),
    ("mend_killed_at_night", "keeps the graphs", "total += loss => total = total + 1.0 * loss"),
    ("mend_killed_at_night", "still has its graph", "        total += loss\n =>         total = loss\n"),
    ("mend_the_swinging_loss", "applies the gradients of earlier batches again", "lr=0.1 => lr=0.01"),
]
NEW = [  # the solution, with something healthy taken away
    ("mend_the_flat_loss", "48 losses, and a right loop computes 96", "batches * 4 => batches * 2"),
    ("mend_the_flat_loss", "Remove one of the two step() calls", f"{STEP} => {STEP}{STEP}"),
    ("mend_four_times_the_work", "weights differ", " / 4\n => \n"),
    ("mend_killed_at_night", "returns 0 and not 2.1", "        total += loss.item() => #"),
    ("mend_killed_at_night", "returns 0.01", "total += => total ="),
    ("mend_learned_by_heart", "computes 120 losses", "loss_fn(model(new_x), new_y) => pass"),
    ("mend_learned_by_heart", "weights differ", "        model.eval()\n => "),
    ("mended_head", "weights differ", "gamma=0.99 => gamma=0.9"),
]


@pytest.mark.parametrize(("name", "remark", "edit"), [*TAKEN_OVER, *NEW])
def test_a_loop_that_is_not_mended_is_told_why(name: str, remark: str, edit: str) -> None:
    it = exercise(name)
    text = it.stub if (name, remark, edit) in TAKEN_OVER else it.solution
    verdict = it.check(loop_of(text, edit))
    assert verdict.state == "not yet"
    assert remark in str(verdict).replace("`", ""), verdict


def run(name: str) -> tuple[LoopRun, list[Any]]:
    """The solution's run, and what a loop of one's own is called with."""
    mending = exercise(name).definition
    done = mending.run(stub_of(exercise(name).solution))
    torch.manual_seed(0)
    return done, list(mending.arguments())


def flat(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


# name -> lr, epochs, micro-batches in a window
BY_HAND = {
    "mend_the_flat_loss": (0.2, 4, 1),
    "mend_four_times_the_work": (0.2, 4, 4),
    "mend_killed_at_night": (0.1, 4, 1),
    "mend_the_swinging_loss": (0.1, 8, 1),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_the_right_loop_trains_as_updates_by_hand(name: str) -> None:
    """With autograd.grad: no .grad and no optimizer. Rounding adds up to less than 1e-4 in 192 updates."""
    lr, epochs, window = BY_HAND[name]
    done, (model, loss_fn, batches) = run(name)
    batches, losses = batches * epochs, []
    for start in range(0, len(batches), window):
        losses += [loss_fn(model(x), y) for x, y in batches[start : start + window]]
        gradients = torch.autograd.grad(sum(losses[start:]) / window, list(model.parameters()))
        with torch.no_grad():
            for p, gradient in zip(model.parameters(), gradients, strict=True):
                p -= lr * gradient
    assert torch.allclose(done.weights, flat(model), rtol=0, atol=1e-4)
    assert done.losses == pytest.approx([loss.item() for loss in losses], abs=1e-3)


def test_dropout_and_validation_are_in_the_modes_they_should_be() -> None:
    done, (model, loss_fn, noisy, new_x, new_y) = run("mend_learned_by_heart")
    optimizer, on_new = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), []
    for _ in range(60):
        for x, y in noisy:
            hidden = nn.functional.relu(model[0](x))
            loss = loss_fn(model[3](nn.functional.dropout(hidden, 0.5)), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        on_new.append(loss_fn(model[3](nn.functional.relu(model[0](new_x))), new_y).item())
    assert torch.allclose(done.weights, flat(model), rtol=0, atol=1e-3)
    assert done.validation == pytest.approx(on_new, abs=1e-3)


def test_a_check_leaves_the_kernel_as_it_was() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    with nothing_left():
        exercise("mend_learned_by_heart").check(lambda *arguments: torch.set_default_dtype(torch.float64))
    assert torch.equal(torch.get_rng_state(), before)


def test_what_is_no_loop_or_stops_is_a_verdict() -> None:
    it = exercise("mend_the_flat_loss")
    assert it.check(None).state == "not attempted"
    assert it.check("text").remark.startswith("The answer must be a function: pass `mend_the_flat_loss` itself")
    verdict = it.check(lambda *arguments: 1 / 0)
    assert verdict.state == "not yet"
    assert verdict.remark.startswith("No loss is computed. It raises ZeroDivisionError")
    assert verdict._repr_mimebundle_()["text/html"].count("<img") == 1

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        it.check(interrupted)


def test_each_loop_reads_the_digits_of_the_task() -> None:
    _, (model, _, batches) = run("mend_the_flat_loss")
    task = tasks.digits(device="cpu")
    assert torch.equal(flat(model), flat(task.build(seed=0)))
    for mine, theirs in zip(batches, task.batches, strict=True):
        assert torch.equal(mine[0], theirs[0])
        assert torch.equal(mine[1], theirs[1])

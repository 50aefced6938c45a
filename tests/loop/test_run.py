"""Run: slices, switches, edits and their failures, reset; what a mistake leaves behind is nothing."""

from __future__ import annotations

import copy
import gc
import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import pytest
import torch
from points import points
from torch import Tensor, nn

from gradlab import Recipe, Run, tasks
from gradlab._torch import outside_dispatch_modes
from gradlab.loop.program import LoopError
from gradlab.memory.ledger import Ledger
from gradlab.tasks import Task

POINTS = points()
LINE = tasks.line(device="cpu")


def dropout_task() -> Task:
    """The points with a model that draws random numbers and keeps running means."""

    def build(seed: int) -> nn.Module:
        return nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 3))

    return replace(POINTS, name="dropout", builder=build)


DROPOUT = dropout_task()


def bits(value: Any) -> Any:
    """Tensors as bytes, so that everything around them can be compared with ==; NaN equals NaN."""
    if isinstance(value, Tensor):
        return (str(value.dtype), tuple(value.shape), value.detach().numpy().tobytes())
    if isinstance(value, dict):
        return {k: bits(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [bits(v) for v in value]
    return value


def generator_state(run: Run) -> Tensor:
    """The state of the run's own random numbers."""
    with run.engine.rng:  # private: a loop can observe its random numbers only by drawing some
        return torch.get_rng_state()


def state(run: Run) -> dict[str, Any]:
    """All that a mistake must leave as it was, the book and the random numbers included."""
    now = run.provenance.contents()
    before = torch.get_rng_state()
    drawn = generator_state(run)
    assert torch.equal(before, torch.get_rng_state())
    assert run.optimizer is not None
    return {
        "weights": bits(dict(run.model.state_dict())),
        "grads": bits([p.grad for p in run.model.parameters()]),
        "optimizer": bits(copy.deepcopy(run.optimizer.state_dict())),
        "scale": run.loop.scale(),
        "random": bits(drawn),
        "modes": [m.training for m in run.model.modules()],
        "frozen": [p.requires_grad for p in run.model.parameters()],
        "book": (now.holds, now.applied, now.norm, run.provenance.reused()),
        "counts": (run.provenance.backwards, run.provenance.steps),
        "entries": [(list(e.batches), list(e.rhythms), e.steps, e.reused) for e in run.provenance.histories],
    }


def hooks(model: nn.Module) -> int:
    return sum(len(p._backward_hooks or ()) + len(p._post_accumulate_grad_hooks or ()) for p in model.parameters())


def weights(model: nn.Module) -> list[Any]:
    return bits(list(model.state_dict().values()))


# Slices


def test_run_statement_goes_line_by_line_through_the_text() -> None:
    run = Run(LINE, Recipe(lr=0.01))
    lines = run.source.splitlines()
    assert run.line == 1  # the set-up has run
    got = [lines[run.run_statement() - 1].strip() for _ in range(9)]
    body = [line.strip() for line in lines[2:]]
    assert got == [*body[:8], body[1]]
    assert run.updates == 1
    with pytest.warns(DeprecationWarning, match="run_statement"):
        assert lines[run.step() - 1].strip() == body[2]


def test_weights_to_begin_with_are_those_of_the_first_update() -> None:
    run = Run(LINE)
    run.reset(weights=(0.5, -2.0))
    by_hand = LINE.build(0)
    nn.utils.vector_to_parameters(torch.tensor([0.5, -2.0]), by_hand.parameters())
    names = {"torch": torch, "model": by_hand, "loss_fn": LINE.loss_fn, "batches": LINE.batches, "device": "cpu"}
    exec(run.source, {**names, "epochs": 1})
    run.advance(updates=len(LINE.batches))
    for a, b in zip(run.model.parameters(), by_hand.parameters(), strict=True):
        assert torch.equal(a, b)
    for bad in [(1.0,), (1.0, math.nan), "ab", 3.0]:
        with pytest.raises(ValueError, match=r"weights must be 2 finite numbers, got"):
            run.reset(weights=bad)  # type: ignore[arg-type]
    assert run.updates == len(LINE.batches), "and nothing has changed"


def test_advance_finishes_an_update_that_was_begun() -> None:
    run = Run(POINTS)
    run.run_statement()
    before = state(run)
    assert run.advance(updates=0) == 0
    assert state(run) == before
    assert not run.engine.at_boundary
    assert run.advance(updates=1) == 1
    assert run.updates == 1
    assert run.engine.at_boundary


def test_advance_by_time_runs_at_least_one_update() -> None:
    run = Run(POINTS)
    assert run.advance(seconds=0) == 1
    assert run.advance(seconds=0.05) > 1
    assert run.updates == run.provenance.steps


def ends(run: Run) -> list[tuple[str, dict[str, int]]]:
    """The bytes alive at the end of each statement of the update that was watched last."""
    groups = groupby(run.watched[-1][1], key=lambda point: point.number)
    return [(points[-1].statement, points[-1].bytes) for points in (list(group) for _, group in groups)]


def test_the_timeline_has_every_statement_of_the_last_update() -> None:
    run = Run(POINTS, Recipe(optimizer="adam"))
    run.watch_memory = True
    run.advance(updates=3)
    assert [label for label, _ in ends(run)] == ["for", "x, y", "zero_grad", "output", "loss", "backward", "step"]
    size = sum(p.numel() for p in run.model.parameters()) * 4
    bytes_after = dict(ends(run))
    assert bytes_after["zero_grad"]["gradients"] == 0
    assert bytes_after["backward"]["gradients"] == bytes_after["backward"]["weights"] == size
    assert bytes_after["step"]["optimizer"] == 2 * size + 4 * len(list(run.model.parameters()))  # and a count each
    assert bytes_after["output"]["activations"] > 0 == bytes_after["backward"]["activations"]


def test_the_last_three_watched_updates_are_kept() -> None:
    run = Run(POINTS, Recipe())
    run.watch_memory = True
    for updates in (1, 5, 2, 4):
        run.advance(updates=updates)
    assert [number for number, _ in run.watched] == [6, 8, 12]
    run.run_statement()
    assert [number for number, _ in run.watched] == [8, 12, 13]
    assert [label for label, _ in ends(run)] == ["for"]
    run.advance(updates=1)  # the same update goes on, in the same ledger
    assert run.watched[-1][0] == 13
    assert [label for label, _ in ends(run)] == ["for", "x, y", "zero_grad", "output", "loss", "backward", "step"]


class Loader(list[Any]):
    """Hands out fresh copies, as a DataLoader does, and like a worker of its own out of sight of the ledger."""

    def __iter__(self) -> Any:
        for x, y in super().__iter__():
            with outside_dispatch_modes():
                copies = x.clone(), y.clone()
            yield copies
            del copies

    def __getitem__(self, index: Any) -> Any:
        return Loader(super().__getitem__(index))


def test_a_loop_that_writes_into_batches_leaves_the_data_alone() -> None:
    run = Run(POINTS, Recipe())
    before = [x.clone() for x, _ in POINTS.batches]
    run.edit(
        run.source.replace(
            "optimizer.zero_grad", "x.add_(1.0)\n        batches[0][0].zero_()\n        optimizer.zero_grad"
        )
    )
    run.advance(updates=3)
    assert all(torch.equal(x, old) for (x, _), old in zip(POINTS.batches, before, strict=True))


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(accumulate=4, amp="bf16", clip=1.0), Recipe(zero_grad=False)])
def test_what_gradlab_itself_computes_is_in_nobodys_bytes(recipe: Recipe) -> None:
    run = Run(POINTS, recipe)
    run.watch_memory = True
    run.advance(updates=3)
    assert run.ledger is not None

    setup, loop = recipe.source().split("\n\n")
    model = POINTS.build(0)
    names = {"torch": torch, "model": model, "loss_fn": POINTS.loss_fn, "device": POINTS.device, "epochs": 1}
    exec(setup, names)
    for update in range(3):
        names["batches"] = Loader(POINTS.batches[update * recipe.accumulate : (update + 1) * recipe.accumulate])
        ledger = Ledger(model, [names["optimizer"]], [v for k, v in names.items() if k in ("x", "y")])
        with ledger:
            exec(loop, names)
    # A Run keeps the losses of a window until it has written them down: a few bytes each.
    assert ledger.peak <= run.ledger.peak <= ledger.peak + 4 * recipe.accumulate


# Seeds and random numbers


def test_the_global_random_numbers_are_left_alone() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    run = Run(DROPOUT)
    run.advance(updates=5)
    run.run_statement()
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(99)
    other = Run(DROPOUT)
    other.advance(updates=2)
    torch.rand(7)
    other.advance(updates=3)
    other.run_statement()
    assert state(other) == state(run)


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(optimizer="adam", amp="fp16", accumulate=4, zero_grad=False)])
def test_reset_brings_back_the_first_state(recipe: Recipe) -> None:
    run = Run(DROPOUT, recipe, seed=6)
    first, line = state(run), run.line
    run.advance(updates=12)
    after = state(run)
    run.run_statement()
    run.reset()
    assert (state(run), run.line, run.updates, len(run.record.rows)) == (first, line, 0, 0)
    assert not run.watched
    assert run.ledger is None
    run.advance(updates=12)
    assert state(run) == after


def test_resets_take_the_hooks_off_the_old_model_and_let_it_go() -> None:
    run = Run(POINTS, Recipe(optimizer="adam"))
    models = []
    for _ in range(2):
        run.advance(updates=2)
        old, optimizer = run.model, run.optimizer
        assert optimizer is not None
        assert hooks(old) > 0
        run.reset()
        assert hooks(old) == 0
        assert not optimizer._optimizer_step_pre_hooks
        assert not optimizer._optimizer_step_post_hooks
        assert hooks(run.model) == 2 * len(list(run.model.parameters()))
        models.append(weakref.ref(old))
        del old, optimizer
    gc.collect()
    assert [ref() for ref in models] == [None] * 2


# Switches in the record


def test_an_edit_inside_an_update_completes_it_first() -> None:
    run, other = Run(POINTS), Run(POINTS)
    for _ in range(3):
        run.run_statement()
    run.edit(EDIT)
    other.advance(updates=1)
    assert (run.updates, run.engine.at_boundary, run.loops[-1][0]) == (1, True, 1)
    assert weights(run.model) == weights(other.model)
    run.complete_update()  # nothing is left of it
    assert run.updates == 1


# Edits

EDIT = Recipe(optimizer="momentum", lr=0.02).source()


def started(task: Task = DROPOUT) -> Run:
    """A run that has something to lose: optimizer state, gradients that a step has used, running means."""
    run = Run(task, Recipe(optimizer="momentum", lr=0.02, zero_grad=False), seed=2)
    run.advance(updates=4)
    return run


def test_an_edit_equals_the_same_edit_by_hand() -> None:
    """The state carries over, and the edited text begins an epoch of its own."""
    run = started(POINTS)
    run.edit(EDIT)
    run.advance(updates=5)
    model = POINTS.build(2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for clear, batches in ((False, POINTS.batches[:4]), (True, POINTS.batches[:5])):
        for x, y in batches:
            if clear:
                optimizer.zero_grad()
            POINTS.loss_fn(model(x), y).backward()
            optimizer.step()
    assert weights(run.model) == weights(model)


AT_ONCE = {
    "syntax": (EDIT.replace("range(epochs):", "range(epochs)"), 3),
    "set-up that has changed things": (
        "for_later = [torch.nn.init.zeros_(p) for p in model.parameters()]\n"
        "for_later += [setattr(p, 'grad', None) for p in model.parameters()]\n"
        "torch.rand(3)\nmodel.eval()\nmodel.requires_grad_(False)\n"
        + EDIT.replace("optimizer =", "optimizer = 1 / 0 #"),
        6,
    ),
}
UNDER_WAY = {
    "first statement of the loop": (EDIT.replace("range(epochs)", "range(nothing)"), 3),
    "before backward": (EDIT.replace("loss.backward()", "loss.backwards()"), 9),
    "after backward": (EDIT.replace("optimizer.step()", "optimizer.stepp()"), 10),
    "after doing harm": (
        EDIT.replace(
            "optimizer.step()",
            "model.eval(); model.requires_grad_(False); torch.nn.init.zeros_(model[0].weight); torch.rand(5); 1 / 0",
        ),
        10,
    ),
}


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_mistake_found_at_once_changes_nothing(name: str) -> None:
    text, line = AT_ONCE[name]
    run, untouched = started(), started()
    before, source, line_before = state(run), run.source, run.line
    with pytest.raises(LoopError, match=f"^line {line}: "):
        run.edit(text)
    assert state(run) == before
    unchanged = (source, line_before, 4, False, [])
    assert (run.source, run.line, run.updates, run.loop.is_edited, run.record.switches) == unchanged
    goes_on_like(run, untouched)


def goes_on_like(run: Run, untouched: Run) -> None:
    """After the mistake the run goes on just as an undisturbed one."""
    for r in (run, untouched):
        r.advance(updates=9)
    assert state(run) == state(untouched)
    assert bits(list(run.record.rows["loss"])) == bits(list(untouched.record.rows["loss"]))


@pytest.mark.parametrize("watch_memory", [False, True])
@pytest.mark.parametrize("name", UNDER_WAY)
def test_a_mistake_in_the_first_update_brings_the_old_loop_back(name: str, watch_memory: bool) -> None:
    text, line = UNDER_WAY[name]
    run, untouched = started(), started()
    run.watch_memory = watch_memory
    before, source = state(run), run.source
    run.edit(text)
    with pytest.raises(LoopError, match=f"^line {line}: "):
        run.advance(updates=3)
    assert state(run) == before
    assert (run.source, run.updates, run.loop.is_edited) == (source, 4, False)
    assert run.engine.at_boundary
    goes_on_like(run, untouched)


LATER = "optimizer.step()\n        count += 1\n        if count == 3:\n            1 / 0"


def test_a_mistake_after_some_updates_goes_back_to_the_last_one() -> None:
    run, untouched = started(), started()
    run.edit("count = 0\n" + EDIT.replace("optimizer.step()", LATER))
    untouched.edit("count = 0\n" + EDIT)
    with pytest.raises(LoopError, match=r"^line 14: ZeroDivisionError"):
        run.advance(updates=9)
    untouched.advance(updates=3)
    assert run.updates == 7
    assert run.loop.is_edited  # it has done something, so it stays
    assert state(run) == state(untouched)
    run.switch(run.recipe)
    untouched.switch(untouched.recipe)
    goes_on_like(run, untouched)


INDENTED = "".join(f"    {line}\n" for line in EDIT.splitlines())
NO_STEP, ONE_STATEMENT = "no optimizer took a step", "RuntimeError: one statement read 200 batches"
ENDLESS = {
    "while": ("while True:\n    pass\n", (1, 2), NO_STEP),
    "no step": (EDIT.replace("        optimizer.step()\n", ""), tuple(range(3, 11)), NO_STEP),
    "no batch": ("for epoch in range(epochs):\n    n = epoch\n", (1, 2), NO_STEP),
    # Within one statement there is no pause, and it plays for a thousand million epochs.
    "function": (f"def train():\n{INDENTED}train()\n", (12,), ONE_STATEMENT),
    "with": (f"with torch.enable_grad():\n{INDENTED}", (5,), ONE_STATEMENT),
    "comprehension": (
        EDIT.replace("x, y = x", "all = [x for i in range(epochs) for x, y in batches]; x, y = x"),
        (5,),
        ONE_STATEMENT,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_loop_is_stopped_and_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradlab.loop.engine.MOST_STATEMENTS", 1000)
    monkeypatch.setattr("gradlab.loop.run.MOST_STATEMENTS", 1000)
    monkeypatch.setattr("gradlab.loop.engine.MOST_BATCHES", 200)
    text, lines, message = ENDLESS[name]
    run, untouched = started(), started()
    run.watch_memory = message == NO_STEP
    before = state(run)
    with pytest.raises(LoopError, match=message) as caught:
        edit_and_advance(run, text)
    assert caught.value.line in lines
    assert state(run) == before
    assert all(len(points) <= 2000 for _, points in run.watched)
    goes_on_like(run, untouched)


def edit_and_advance(run: Run, text: str) -> None:
    run.edit(text)
    run.advance(updates=1)


def test_a_loop_that_ends_is_done() -> None:
    run = started()
    run.edit(EDIT.replace("range(epochs)", "range(1)") + "total = len(batches)\n")
    assert run.advance(updates=1000) == len(POINTS.batches)
    assert run.engine.done
    assert run.engine.at_boundary
    assert run.loop.namespace["total"] == len(POINTS.batches)
    after = state(run)
    assert run.advance(updates=5) == 0
    assert run.advance(seconds=0.1) == 0
    run.run_statement()
    assert state(run) == after
    run.switch(run.recipe)  # and on it goes
    assert (run.advance(updates=3), run.engine.done) == (3, False)


def test_the_end_of_the_loop_completes_an_update() -> None:
    run = started()
    run.edit("for x, y in batches:\n    loss = loss_fn(model(x), y)\n    loss.backward()\n")  # no step()
    run.run_statement()
    run.complete_update()
    assert (run.engine.done, run.line) == (True, 3), "the loop ended, and is not begun again"


# Interruptions


@dataclass
class Interrupting:
    """A loss function that raises KeyboardInterrupt at one call, as a click on the stop button does."""

    loss_fn: Callable[..., Tensor]
    interrupted_call: int
    calls: int = 0

    def __call__(self, *args: Any) -> Tensor:
        self.calls += 1
        if self.calls == self.interrupted_call:
            raise KeyboardInterrupt
        return self.loss_fn(*args)


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(accumulate=4), Recipe(amp="fp16", clip=1.0)])
def test_an_interrupt_leaves_the_run_usable(recipe: Recipe) -> None:
    run = Run(replace(POINTS, loss_fn=Interrupting(POINTS.loss_fn, 6)), recipe)
    with pytest.raises(KeyboardInterrupt):
        run.advance(updates=20)
    done = run.updates
    assert done == 5 // recipe.accumulate
    assert run.advance(updates=20) == 20
    assert run.updates == done + 20
    assert math.isfinite(run.record.loss)
    assert torch.is_grad_enabled()
    assert not torch.is_autocast_enabled("cpu")


def test_an_interrupted_edit_goes_back_to_its_last_update() -> None:
    loss_fn = Interrupting(DROPOUT.loss_fn, 8)
    run, untouched = started(replace(DROPOUT, loss_fn=loss_fn)), started()
    for r in (run, untouched):
        r.edit(EDIT)
    with pytest.raises(KeyboardInterrupt):
        run.advance(updates=9)
    untouched.advance(updates=3)
    assert state(run) == state(untouched)
    goes_on_like(run, untouched)


# Divergence


def test_a_skipped_step_is_an_update_that_changed_nothing() -> None:
    run = Run(LINE, Recipe(amp="fp16", lr=0.01))
    before = weights(run.model)
    run.advance(updates=1)
    assert run.record.skipped == [1]
    assert run.provenance.steps == 0
    assert weights(run.model) == before
    assert list(run.record.rows["scale"]) == [65536.0]
    assert run.loop.scale() == 32768.0


def test_a_scaler_that_is_off_takes_no_state_and_gives_none() -> None:
    run = Run(tasks.line(), Recipe(amp="fp16"))
    run.advance(updates=2)
    text = run.source
    off = text.replace("GradScaler(device)", "GradScaler(device, enabled=False)")
    for source in (off, text):
        run.edit(source)
        run.advance(updates=2)
    assert run.updates == 6

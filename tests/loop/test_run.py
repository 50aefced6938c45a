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
    """Where the run's own random numbers are."""
    with run._engine.rng:  # private: a loop can tell its random numbers only by drawing some
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
        "scale": run.loss_scale,
        "random": bits(drawn),
        "modes": [m.training for m in run.model.modules()],
        "frozen": [p.requires_grad for p in run.model.parameters()],
        "book": (now.holds, now.stale, now.norm, run.provenance.reused()),
        "counts": (run.provenance.backwards, run.provenance.steps),
        "entries": [(list(e.batches), e.applied_to, e.reused) for e in run.provenance.histories],
    }


def hooks(model: nn.Module) -> int:
    return sum(len(p._backward_hooks or ()) + len(p._post_accumulate_grad_hooks or ()) for p in model.parameters())


def weights(model: nn.Module) -> list[Any]:
    return bits(list(model.state_dict().values()))


# Slices


def test_step_goes_line_by_line_through_the_text() -> None:
    run = Run(LINE, Recipe(lr=0.01))
    lines = run.source.splitlines()
    assert run.line == 1  # the set-up has run
    got = [lines[run.step() - 1].strip() for _ in range(9)]
    body = [line.strip() for line in lines[2:]]
    assert got == [*body[:8], body[1]]
    assert run.updates == 1


def test_steps_to_a_line_are_those_steps() -> None:
    run, other = Run(LINE), Run(LINE)
    line = 1 + next(n for n, text in enumerate(run.source.splitlines()) if "backward()" in text)
    assert run.step_to(line)
    while other.line != line:
        other.step()
    assert run.line == line
    assert [p.grad.tolist() for p in run.model.parameters()] == [p.grad.tolist() for p in other.model.parameters()]
    assert run.step_to(line), "once more: in the next update"
    assert run.updates == 1
    assert not run.step_to(1), "set-up has run"
    assert run.updates == 3
    with pytest.raises(ValueError, match="line must be one of a statement of the loop, got 999"):
        run.step_to(999)


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


def test_step_and_advance_agree_on_where_an_update_ends() -> None:
    run = Run(POINTS, Recipe(accumulate=3, amp="fp16", clip=1.0))
    while not run.updates:
        run.step()
        assert run.at_boundary == bool(run.updates)
    assert run.source.splitlines()[run.line - 1].strip() == "scaler.update()"
    assert run.advance(updates=1) == 1
    assert run.source.splitlines()[run.line - 1].strip() == "scaler.update()"


def test_advance_finishes_an_update_that_was_begun_and_of_none_does_nothing() -> None:
    run = Run(POINTS)
    run.step()
    before = state(run)
    assert run.advance(updates=0) == 0
    assert state(run) == before
    assert not run.at_boundary
    assert run.advance(updates=1) == 1
    assert run.updates == 1
    assert run.at_boundary


def test_advance_by_time_runs_at_least_one_update() -> None:
    run = Run(POINTS)
    assert run.advance(seconds=0) == 1
    assert run.advance(seconds=0.05) > 1
    assert run.updates == run.provenance.steps


def ends(run: Run) -> list[tuple[str, dict[str, int]]]:
    """What was alive at the end of each statement of the update that was watched last."""
    groups = groupby(run.timeline, key=lambda point: point.number)
    return [(points[-1].statement, points[-1].bytes) for points in (list(group) for _, group in groups)]


def test_the_timeline_has_every_statement_of_the_last_update() -> None:
    run = Run(POINTS, Recipe(optimizer="adam"))
    run.watch_memory = True
    run.advance(updates=3)
    assert [label for label, _ in ends(run)] == ["for", "x, y", "zero_grad", "output", "loss", "backward", "step"]
    size = sum(p.numel() for p in run.model.parameters()) * 4
    held = dict(ends(run))
    assert held["zero_grad"]["gradients"] == 0
    assert held["backward"]["gradients"] == held["backward"]["weights"] == size
    assert held["step"]["optimizer"] == 2 * size + 4 * len(list(run.model.parameters()))  # two moments, a count each
    assert held["output"]["activations"] > 0 == held["backward"]["activations"]


def test_watched_updates_have_their_numbers_and_only_the_last_three_are_kept() -> None:
    run = Run(POINTS, Recipe())
    run.watch_memory = True
    for updates in (1, 5, 2, 4):
        run.advance(updates=updates)
    assert [number for number, _ in run.watched] == [6, 8, 12]
    run.step()
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

    def __getitem__(self, at: Any) -> Any:
        return Loader(super().__getitem__(at))


def test_a_loop_that_writes_into_its_batches_leaves_the_data_alone() -> None:
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


def test_the_same_seed_gives_the_same_run() -> None:
    def trained(seed: int) -> Any:
        run = Run(DROPOUT, Recipe(), seed=seed)
        before = generator_state(run)
        run.advance(updates=25)
        assert not torch.equal(before, generator_state(run)), "or neither seed nor random numbers would matter"
        return state(run), bits(list(run.record.rows["loss"]))

    assert trained(4) == trained(4)
    assert trained(4) != trained(5)


def test_the_global_random_numbers_are_left_alone_and_do_not_matter() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    run = Run(DROPOUT)
    run.advance(updates=5)
    run.step()
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(99)
    other = Run(DROPOUT)
    other.advance(updates=2)
    torch.rand(7)
    other.advance(updates=3)
    other.step()
    assert state(other) == state(run)


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(optimizer="adam", amp="fp16", accumulate=4, zero_grad=False)])
def test_reset_brings_back_the_first_state(recipe: Recipe) -> None:
    run = Run(DROPOUT, recipe, seed=6)
    first, line = state(run), run.line
    run.advance(updates=12)
    after = state(run)
    run.step()
    run.reset()
    assert (state(run), run.line, run.updates, len(run.record.rows)) == (first, line, 0, 0)
    assert run.timeline == []
    assert run.ledger is None
    run.advance(updates=12)
    assert state(run) == after


def test_resets_take_the_hooks_off_the_old_model_and_let_it_go() -> None:
    run = Run(POINTS, Recipe(optimizer="adam"))
    seen = []
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
        seen.append(weakref.ref(old))
        del old, optimizer
    gc.collect()
    assert [ref() for ref in seen] == [None] * 2


def test_close_takes_everything_off_and_a_dropped_run_is_freed() -> None:
    run = Run(POINTS)
    run.advance(updates=2)
    model, optimizer = run.model, run.optimizer
    assert optimizer is not None
    run.close()
    assert hooks(model) == 0
    assert not optimizer._optimizer_step_pre_hooks
    ref = weakref.ref(run)
    del run
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize("loop", [Recipe(accumulate=4), Recipe(optimizer="momentum", lr=0.02).source()])
def test_reset_begins_with_another_loop_and_keeps_it(loop: Recipe | str) -> None:
    run, fresh = Run(POINTS), Run(POINTS, loop if isinstance(loop, Recipe) else None)
    run.advance(updates=1)
    run.step()
    run.reset(loop=loop)
    if isinstance(loop, str):
        fresh.edit(loop)
    assert run.loops == [(0, loop)]
    assert (run.source, run.edited, run.updates) == (fresh.source, fresh.edited, 0)
    fresh.advance(updates=3)
    for _ in range(2):
        assert run.edited == isinstance(loop, str)
        run.advance(updates=3)
        assert weights(run.model) == weights(fresh.model)
        run.reset()  # and one that names no loop keeps it


# Switches in the record


def test_switches_are_marked_in_words() -> None:
    run = Run(POINTS, Recipe())
    run.advance(updates=3)
    run.switch(Recipe(zero_grad=False))
    run.advance(updates=2)
    run.switch(Recipe(zero_grad=False, lr=0.05))
    run.switch(Recipe(lr=0.05))
    assert run.record.switches == [(3, "zero_grad off"), (5, "lr 0.05, zero_grad on")]


def test_an_edit_inside_an_update_completes_it_with_the_loop_before() -> None:
    run, other = Run(POINTS), Run(POINTS)
    for _ in range(3):
        run.step()
    run.edit(EDIT)
    other.advance(updates=1)
    assert (run.updates, run.at_boundary, run.loops[-1][0]) == (1, True, 1)
    assert weights(run.model) == weights(other.model)
    assert not run.complete_update(), "nothing is left of it"


# Edits

EDIT = Recipe(optimizer="momentum", lr=0.02).source()


def started(task: Task = DROPOUT) -> Run:
    """A run that has something to lose: optimizer state, gradients that a step has used, running means."""
    run = Run(task, Recipe(optimizer="momentum", lr=0.02, zero_grad=False), seed=2)
    run.advance(updates=4)
    return run


def test_an_edit_runs_and_says_so() -> None:
    run = started()
    run.edit(EDIT + "        double = 2 * loss.item()\n")
    assert run.edited
    assert run.advance(updates=3) == 3
    assert run.namespace["double"] > 0
    assert run.record.switches == [(4, "your own loop")]
    assert run.restarted_optimizers == []  # momentum, as before
    run.switch(run.recipe)
    assert (run.edited, run.source) == (False, run.recipe.source())
    assert run.record.switches[-1] == (7, "the recipe's own loop again")


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
    before, source, at = state(run), run.source, run.line
    with pytest.raises(LoopError, match=f"^line {line}: "):
        run.edit(text)
    assert state(run) == before
    assert (run.source, run.line, run.updates, run.edited, run.record.switches) == (source, at, 4, False, [])
    goes_on_like(run, untouched)


def goes_on_like(run: Run, untouched: Run) -> None:
    """After the mistake the run goes on just as one that nobody disturbed."""
    for r in (run, untouched):
        r.advance(updates=9)
    assert state(run) == state(untouched)
    assert bits(list(run.record.rows["loss"])) == bits(list(untouched.record.rows["loss"]))


@pytest.mark.parametrize("watch_memory", [False, True])
@pytest.mark.parametrize("name", UNDER_WAY)
def test_a_mistake_in_the_first_update_brings_back_the_loop_before(name: str, watch_memory: bool) -> None:
    text, line = UNDER_WAY[name]
    run, untouched = started(), started()
    run.watch_memory = watch_memory
    before, source = state(run), run.source
    run.edit(text)
    with pytest.raises(LoopError, match=f"^line {line}: "):
        run.advance(updates=3)
    assert state(run) == before
    assert (run.source, run.updates, run.edited) == (source, 4, False)
    assert run.at_boundary
    goes_on_like(run, untouched)


def test_a_mistake_found_while_stepping_names_its_line() -> None:
    run = started()
    before = state(run)
    run.edit(EDIT.replace("loss.backward()", "loss.backwards()"))
    for _ in range(6):
        run.step()  # as far as the loss
    with pytest.raises(LoopError, match=r"^line 9: AttributeError.*backwards"):
        run.step()
    assert state(run) == before


LATER = "optimizer.step()\n        count += 1\n        if count == 3:\n            1 / 0"


def test_a_mistake_after_some_updates_goes_back_to_the_last_one() -> None:
    run, untouched = started(), started()
    run.edit("count = 0\n" + EDIT.replace("optimizer.step()", LATER))
    untouched.edit("count = 0\n" + EDIT)
    with pytest.raises(LoopError, match=r"^line 14: ZeroDivisionError"):
        run.advance(updates=9)
    untouched.advance(updates=3)
    assert run.updates == 7
    assert run.edited  # it has done something, so it stays
    assert state(run) == state(untouched)
    run.switch(run.recipe)
    untouched.switch(untouched.recipe)
    goes_on_like(run, untouched)


def test_an_edited_loop_goes_on_after_a_passing_error() -> None:
    """An error that comes once, between ``unscale_`` and ``step``, must not leave the scaler half-way."""
    text = Recipe(amp="fp16", clip=1.0).source().replace("scaler.step", "fail()\n        scaler.step")
    run = Run(POINTS)
    run.edit("calls = []\ndef fail():\n    calls.append(1)\n    if len(calls) == 3: raise ValueError('once')\n" + text)
    with pytest.raises(LoopError, match="once"):
        run.advance(updates=5)
    assert run.updates == 2
    assert run.advance(updates=5) == 5


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


@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_loop_is_stopped_and_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradlab.loop.engine.MOST_STATEMENTS", 1000)
    monkeypatch.setattr("gradlab.loop.run.MOST_STATEMENTS", 1000)
    monkeypatch.setattr("gradlab.loop.bound_program.MOST_BATCHES", 200)
    text, lines, words = ENDLESS[name]
    run, untouched = started(), started()
    run.watch_memory = words == NO_STEP
    before = state(run)
    with pytest.raises(LoopError, match=words) as caught:
        edit_and_advance(run, text)
    assert caught.value.line in lines
    assert state(run) == before
    assert len(run.timeline) <= 2000
    goes_on_like(run, untouched)


def edit_and_advance(run: Run, text: str) -> None:
    run.edit(text)
    run.advance(updates=1)


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(zero_grad=False), Recipe(amp="fp16"), Recipe(set_to_none=False)])
def test_sparse_gradients_are_recorded(recipe: Recipe) -> None:
    def build(seed: int) -> nn.Module:
        return nn.Sequential(nn.Embedding(6, 4, sparse=True), nn.Linear(4, 3))

    batches = [(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 2])), (torch.tensor([4, 5]), torch.tensor([0, 1]))]
    run = Run(replace(POINTS, builder=build, batches=batches), recipe)
    run.watch_memory = True
    run.advance(updates=6)
    grads = [p.grad.to_dense() for p in run.model.parameters() if p.grad is not None]
    norm = math.sqrt(sum(float((g.double() ** 2).sum()) for g in grads))
    assert run.record.rows["norm"][5] == pytest.approx(norm)
    assert run.provenance.contents().norm == pytest.approx(norm)
    assert run.footprint()["weights"] == 4 * (6 * 4 + 4 * 3 + 3)


def test_a_loop_that_ends_is_done() -> None:
    run = started()
    run.edit(EDIT.replace("range(epochs)", "range(1)") + "total = len(batches)\n")
    assert run.advance(updates=1000) == len(POINTS.batches)
    assert run.done
    assert run.at_boundary
    assert run.namespace["total"] == len(POINTS.batches)
    after = state(run)
    assert run.advance(updates=5) == 0
    assert run.advance(seconds=0.1) == 0
    run.step()
    assert state(run) == after
    run.switch(run.recipe)  # and on it goes
    assert (run.advance(updates=3), run.done) == (3, False)


@pytest.mark.parametrize(
    "text",
    [
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)\nx, y = batches[0]\n",
        EDIT.replace("optimizer.zero_grad", "break; optimizer.zero_grad") + "    break\n",
    ],
)
def test_a_loop_without_an_update_is_done_at_once(text: str) -> None:
    run = started()
    before = state(run)
    run.edit(text)
    assert run.advance(updates=3) == 0
    assert run.done
    assert {**state(run), "optimizer": 0} == {**before, "optimizer": 0}


@pytest.mark.parametrize("bad", ["optimizer = nonsense\n", "for epoch in range(1)\n"])
def test_reset_to_a_bad_loop_leaves_the_run_usable(bad: str) -> None:
    run, untouched = started(), started()
    for r in (run, untouched):
        r.step()
    with pytest.raises(LoopError, match=r"^line 1: "):
        run.reset(loop=bad)
    assert run.source == untouched.source
    assert state(run) == state(untouched)
    assert hooks(run.model) == 2 * len(list(run.model.parameters()))
    goes_on_like(run, untouched)


@pytest.mark.parametrize("other", ["fp16", "off"])
def test_a_disabled_scaler_in_an_edit_can_be_switched_away_from(other: str) -> None:
    run = Run(POINTS)
    run.edit(Recipe(amp="fp16").source().replace("GradScaler(device)", "GradScaler(device, enabled=False)"))
    assert run.advance(updates=2) == 2
    run.switch(Recipe(amp=other))
    assert run.advance(updates=2) == 2


# Interruptions


@dataclass
class Interrupting:
    """A loss function that raises KeyboardInterrupt at one call, as a click on the stop button does."""

    loss_fn: Callable[..., Tensor]
    at: int
    calls: int = 0

    def __call__(self, *args: Any) -> Tensor:
        self.calls += 1
        if self.calls == self.at:
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


def test_an_interrupt_between_unscale_and_step_leaves_the_run_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    clip = Interrupting(nn.utils.clip_grad_norm_, 3)
    run = Run(POINTS, Recipe(amp="fp16", clip=1.0))
    monkeypatch.setattr(nn.utils, "clip_grad_norm_", lambda parameters, max_norm: clip(parameters, max_norm))
    with pytest.raises(KeyboardInterrupt):
        run.advance(updates=5)
    assert run.advance(updates=5) == 5


def test_an_interrupt_in_an_edited_loop_goes_back_to_its_last_update() -> None:
    loss_fn = Interrupting(DROPOUT.loss_fn, 8)
    run, untouched = started(replace(DROPOUT, loss_fn=loss_fn)), started()
    for r in (run, untouched):
        r.edit(EDIT)
    with pytest.raises(KeyboardInterrupt):
        run.advance(updates=9)
    untouched.advance(updates=3)
    assert state(run) == state(untouched)
    goes_on_like(run, untouched)


def test_an_interrupt_in_the_set_up_of_an_edit_changes_nothing() -> None:
    run, untouched = started(), started()
    before = state(run)
    with pytest.raises(KeyboardInterrupt):
        run.edit("model.eval(); [torch.nn.init.zeros_(p) for p in model.parameters()]\nraise KeyboardInterrupt\n")
    assert state(run) == before
    goes_on_like(run, untouched)


# Divergence


@pytest.mark.parametrize(("optimizer", "amp"), [("sgd", "off"), ("adam", "fp16"), ("adamw", "bf16")])
def test_a_run_that_diverges_goes_on_and_is_named(optimizer: str, amp: str) -> None:
    run = Run(LINE, Recipe(optimizer=optimizer, amp=amp, lr=1e37))
    run.watch_memory = True
    run.advance(updates=20)
    assert run.updates == 20
    losses = list(run.record.rows["loss"])
    bad = [update for update, loss in enumerate(losses, start=1) if not math.isfinite(loss)]
    assert run.record.broken is not None
    assert run.record.broken == bad[0]
    now = run.provenance.contents()
    assert now.holds
    run.reset()
    assert run.record.broken is None


def test_a_skipped_step_is_an_update_that_changed_nothing() -> None:
    run = Run(LINE, Recipe(amp="fp16", lr=0.01))
    before = weights(run.model)
    run.advance(updates=1)
    assert run.record.skipped == [1]
    assert run.provenance.steps == 0
    assert weights(run.model) == before
    assert list(run.record.rows["scale"]) == [65536.0]
    assert run.loss_scale == 32768.0

"""The run without its newest switch: bit for bit the loop that was never switched; it changes nothing."""

from __future__ import annotations

import gc
import math
import weakref
from dataclasses import replace

import pytest
import torch
from test_exec_equality import (
    SEED,
    TASKS,
    End,
    assert_same,
    each_switched,
    keeping_losses,
    updates_of,
)
from torch import Tensor, nn

from gradlab import Recipe, Run, tasks
from gradlab.loop import Counterfactual
from gradlab.tasks import Task

torch.set_num_threads(1)
FREE = math.inf


class Noisy(nn.Module):
    """Dropout draws random numbers, batch normalization has buffers, and ``shift`` is one that no state_dict holds."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 10)
        )
        self.register_buffer("shift", torch.zeros(10), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.layers(x) + self.shift
        self.shift += 0.01 * output.detach().mean(0)
        return output


def noisy() -> Task:
    """Digits with random numbers in the model, the batches shuffled."""
    short = TASKS["digits"]
    order = torch.randperm(len(short.batches), generator=torch.Generator().manual_seed(1)).tolist()
    return replace(short, name="noisy", builder=lambda seed: Noisy(), batches=[short.batches[index] for index in order])


EACH_TASK = {**TASKS, "bowl": tasks.bowl(device="cpu"), "noisy": noisy()}


def by_exec(task: Task, recipe: Recipe, epochs: int) -> End:
    """Plain ``exec`` of the recipe's text with random numbers of its own, which no switch disturbs."""
    task, losses = keeping_losses(task)
    model = task.build(SEED)
    names = {"loss_fn": task.loss_fn, "batches": task.batches, "device": task.device, "epochs": epochs}
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        exec(recipe.source(), {"torch": torch, "model": model, **names})
    return End.of(model, losses)


def means(losses: list[Tensor], batches: int, window: int) -> list[float]:
    """The mean loss of each update."""
    epochs = [losses[start : start + batches] for start in range(0, len(losses), batches)]
    windows = [epoch[start : start + window] for epoch in epochs for start in range(0, len(epoch), window)]
    return [sum(float(loss) / len(each) for loss in each) for each in windows]


@pytest.mark.slow
@pytest.mark.parametrize(("pair", "name", "after"), each_switched([*EACH_TASK], [0, 1, 4, 9]))
def test_it_is_the_loop_that_was_never_switched(pair: tuple[Recipe, Recipe], name: str, after: int) -> None:
    first, second = pair
    task = EACH_TASK[name]
    epochs = 3 if len(task.batches) < 9 else 1
    total = updates_of(task, first, epochs)
    after = min(after, total - 1)
    run, alone = Run(task, first, seed=SEED), Run(task, first, seed=SEED)
    run.watch_gradients = run.watch_memory = True
    random = torch.get_rng_state()
    run.advance(updates=after)
    copy = run.unswitched()
    run.switch(second)
    alone.advance(updates=after)
    alone.switch(second)
    while copy.updates < total:  # in turn, some updates at a time
        run.advance(updates=min(2, total - run.updates))
        copy.follow(run.updates, FREE)
    alone.advance(updates=total - after)
    assert torch.equal(torch.get_rng_state(), random)
    assert_same(End.of(run.model, []), End.of(alone.model, []))
    never = by_exec(task, first, epochs)
    assert (copy.ended == "") == math.isfinite(copy.record.loss)
    expected = means(never.losses, len(task.batches), first.accumulate)[after:]
    assert list(copy.record.rows["update"]) == list(range(after + 1, total + 1))
    assert [repr(value) for value in copy.record.rows["loss"]] == [repr(value) for value in expected]
    if not copy.ended:
        assert_same(End.of(copy.model, []), End(never.weights, never.grads, []))


def copied(recipe: Recipe | None = None, name: str = "points") -> tuple[Run, Counterfactual]:
    """A run with a copy that goes on without the switch."""
    run = Run(TASKS[name], recipe)
    run.advance(updates=3)
    copy = run.unswitched()
    run.switch(run.recipe.replace(zero_grad=False))
    return run, copy


def test_it_ends_where_it_would_take_more_than_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    run, copy = copied()
    clock = iter(range(10**6))
    monkeypatch.setattr("gradlab.loop.run.time.thread_time", lambda: next(clock) * 0.01)  # 10 ms an update
    copy.follow(60, 10.0 * 100)
    assert copy.updates == 60
    assert not copy.ended  # an average within what is allowed
    for update in range(61, 300):
        copy.follow(update, 5.0)
    assert "more than a tenth of a processor core" in copy.ended
    assert 100 < copy.updates < 300
    stands = list(copy.record.rows["loss"])
    copy.follow(400, FREE)
    assert list(copy.record.rows["loss"]) == stands
    assert len(stands) == copy.updates - 3
    assert run.updates == 3


class Failing:
    """A loss that raises from a call on."""

    def __init__(self, after: int, error: BaseException) -> None:
        self.left, self.error = after, error

    def __call__(self, output: Tensor, y: Tensor) -> Tensor:
        self.left -= 1
        if self.left < 0:
            raise self.error
        return nn.functional.cross_entropy(output, y)


@pytest.mark.parametrize(
    "error", [RuntimeError("no"), torch.cuda.OutOfMemoryError("CUDA out of memory"), KeyError("x")]
)
def test_what_goes_wrong_in_it_ends_it_and_not_the_run(error: Exception) -> None:
    loss_fn = Failing(10**6, error)
    run = Run(replace(TASKS["points"], loss_fn=loss_fn))
    run.advance(updates=3)
    copy = run.unswitched()
    loss_fn.left = 5
    copy.follow(20, FREE)
    assert type(error).__name__ in copy.ended
    assert len(copy.record.rows["loss"]) == 5
    loss_fn.left = 10**6
    run.advance(updates=10)
    reference = Run(TASKS["points"])
    reference.advance(updates=13)
    assert_same(End.of(reference.model, []), End.of(run.model, []))


def test_its_record_is_bounded_and_it_lets_go_of_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradlab.loop.history.MOST_ROWS", 64)
    _, copy = copied(Recipe(lr=0.01), "line")
    model = weakref.ref(copy.model)
    copy.follow(3 + 3 * 64, FREE)
    assert len(copy.record.rows) <= 64
    copy.end("enough")
    gc.collect()
    assert model() is None
    assert copy.record.rows["update"][0] == 4

"""A limit of time stops an update between two statements; what waits for the main thread is done between updates."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gradlab import Ledger, Recipe, Run, tasks
from gradlab._process import main_thread

torch.set_num_threads(1)
NO_STEP = "for x, y in batches * 100_000:\n    loss = loss_fn(model(x), y)\n"


def weights(run: Run) -> list[Tensor]:
    return [param.detach().clone() for param in run.model.parameters()]


def same(run: Run, other: Run) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(run), weights(other), strict=True))


@pytest.mark.parametrize("amount", [{"updates": 3}, {"seconds": 30.0}])
def test_a_limit_stops_an_update_and_the_next_call_goes_on(amount: dict[str, float]) -> None:
    run, other = Run(tasks.line(), Recipe(accumulate=4, lr=0.01)), Run(tasks.line(), Recipe(accumulate=4, lr=0.01))
    assert run.advance(**amount, limit=0.0) == 0  # type: ignore[arg-type]
    assert not run.engine.at_boundary
    assert run.engine.statements_since_update == 1
    while run.updates < 2:
        run.advance(updates=1, limit=0.0)
    other.advance(updates=2)
    assert same(run, other)


@pytest.mark.slow
def test_a_loop_that_never_steps_is_given_up_for_another() -> None:
    run, other = Run(tasks.bowl()), Run(tasks.bowl())
    for each in (run, other):
        each.advance(updates=3)
    run.edit(NO_STEP)
    assert run.advance(updates=1, limit=0.05) == 0
    run.switch(Recipe(lr=0.05))
    other.switch(Recipe(lr=0.05))
    assert [loop for _, loop in run.loops] == [loop for _, loop in other.loops]
    for each in (run, other):
        each.advance(updates=3)
    assert same(run, other)


def test_what_waits_is_done_between_two_updates() -> None:
    run, other, alone = (Run(tasks.digits()) for _ in range(3))
    before: list[int] = []

    def serve_other() -> None:
        before.append(run.updates)
        other.advance(updates=2)
        if len(before) < 3:
            main_thread.hand_over(serve_other, lambda work: None)

    main_thread.hand_over(serve_other, lambda work: None)
    assert run.advance(updates=6) == 6
    assert before == [1, 2, 3]
    assert other.updates == 6
    alone.advance(updates=6)
    assert same(run, alone)
    assert same(other, alone)


def test_nothing_is_done_where_a_ledger_would_count_it() -> None:
    run, done = Run(tasks.bowl()), []
    main_thread.hand_over(lambda: done.append(run.updates), lambda work: None)
    with Ledger(run.model):
        assert run.advance(updates=4) == 4
    assert not done
    run.advance(updates=1)
    assert done == [5]

"""Runs in threads of one process: each trains as if it were alone, and the caller's random numbers stay."""

from __future__ import annotations

import ast
import threading
import time
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab import Recipe, Run
from gradlab._process import parse_python
from gradlab.loop import Program
from gradlab.tasks import Task


def with_dropout() -> Task:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 8, generator=generator)
    return Task(
        name="dropout",
        builder=lambda seed: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 1)),
        batches=list(zip(x.split(8), x.sum(1, keepdim=True).split(8), strict=True)),
        loss_fn=nn.functional.mse_loss,
    )


def weights_after(run: Run, updates: int, *, by: str) -> list[Tensor]:
    """Train in slices, or statement by statement, so that two threads take turns in between."""
    while run.updates < updates:
        if by == "statements":
            run.step()
        else:
            run.advance(updates=min(5, updates - run.updates))
    return [parameter.detach().clone() for parameter in run.model.parameters()]


@pytest.mark.parametrize("by", ["updates", "statements"])
def test_two_runs_in_two_threads_train_as_each_does_alone(by: str) -> None:
    updates = 300 if by == "updates" else 60
    recipes = [Recipe(lr=0.01), Recipe(lr=0.01, optimizer="adam", zero_grad=False)]
    alone = [weights_after(Run(with_dropout(), recipe, seed), updates, by=by) for seed, recipe in enumerate(recipes)]
    torch.manual_seed(7)
    before = torch.get_rng_state()
    together: dict[int, list[Tensor]] = {}
    start = threading.Barrier(2)

    def train(seed: int, recipe: Recipe) -> None:
        start.wait()
        together[seed] = weights_after(Run(with_dropout(), recipe, seed), updates, by=by)

    threads = [threading.Thread(target=train, args=pair) for pair in enumerate(recipes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, expected in enumerate(alone):
        for mine, theirs in zip(expected, together[seed], strict=True):
            assert torch.equal(mine, theirs), f"run {seed} depends on the other thread"
    assert torch.equal(torch.get_rng_state(), before)


def test_two_threads_do_not_parse_their_loops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 may raise SystemError then: it builds a tree, collects garbage in the middle, and threads change."""
    parse, inside, found = ast.parse, [0], []

    def parse_slowly(*given: Any, **more: Any) -> Any:
        inside[0] += 1
        found.append(inside[0])
        time.sleep(0.01)
        inside[0] -= 1
        return parse(*given, **more)

    monkeypatch.setattr(ast, "parse", parse_slowly)
    threads = [threading.Thread(target=Program, args=[Recipe().source()]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) >= len(threads)
    assert set(found) == {1}


def test_a_loop_is_parsed_again_where_a_thread_of_others_was_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, tries = ast.parse, iter([SystemError("AST constructor recursion depth mismatch")])

    def parse_at_last(*given: Any, **more: Any) -> Any:
        for error in tries:
            raise error
        return parse(*given, **more)

    monkeypatch.setattr(ast, "parse", parse_at_last)
    assert Program(Recipe().source()).statements
    monkeypatch.setattr(ast, "parse", lambda *given: parse("(", "shown"))
    with pytest.raises(SyntaxError, match="never closed"):
        parse_python("anything")

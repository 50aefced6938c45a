"""Runs in threads of one process: each trains as if it were alone, and the caller's random numbers stay."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import Tensor, nn

from gradlab import Recipe, Run
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

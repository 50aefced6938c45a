"""A recipe's loop run for real against the allocator's events of the same text."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.profiler import ProfilerActivity, profile

from gradlab import Recipe
from gradlab.course import real_peak


def made(window: int) -> tuple[nn.Module, list[tuple[torch.Tensor, torch.Tensor]]]:
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    return model, [(torch.randn(16, 32), torch.randint(10, (16,))) for _ in range(window)]


@pytest.mark.parametrize(
    "recipe",
    [Recipe(), Recipe(set_to_none=False, optimizer="adam"), Recipe(accumulate=2), Recipe(optimizer="momentum")],
    ids=str,
)
def test_it_is_what_the_allocator_gave_out(recipe: Recipe) -> None:
    said = real_peak(*made(recipe.accumulate)[:1], recipe, made(recipe.accumulate)[1], cross_entropy, kernels=True)
    gc.collect()
    told = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
    with told:
        model, batches = made(recipe.accumulate)
        names: dict[str, Any] = {"torch": torch, "model": model, "loss_fn": cross_entropy, "batches": batches}
        exec(recipe.source(), names | {"device": "cpu", "epochs": 2})
    now = highest = 0
    for event in sorted(told.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            now += event.nbytes()
            highest = max(highest, now)
    assert abs(said - highest) <= 64


def test_what_is_wrong_is_named() -> None:
    model, batches = made(1)
    with pytest.raises(TypeError, match=r"recipe must be a gradlab\.Recipe, got 'adam'"):
        real_peak(model, "adam", batches, cross_entropy)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one batch or more"):
        real_peak(model, Recipe(), [], cross_entropy)

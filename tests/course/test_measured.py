"""What code costs when it runs, against the allocator's events and formulas."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.profiler import ProfilerActivity, profile

from gradlab import Recipe
from gradlab.course import OperationLog, real_peak


def linear_stack(width: int, depth: int) -> nn.Sequential:
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)])


def test_bytes_are_counted_as_shapes_times_element_size() -> None:
    a, b = torch.ones(100), torch.ones(100)
    with OperationLog() as log:
        a.add_(b)  # reads both, writes the first
        a.zero_()  # reads nothing
        a.view(10, 10)  # does nothing
        torch.empty(50)  # reserves a place
    assert (log.names, log.read, log.written, log.moved) == (["add_", "zero_", "empty"], 800, 800, 1600)


@pytest.mark.parametrize("foreach", [False, True])
def test_lists_of_tensors_count_as_their_tensors(foreach: bool) -> None:
    model = linear_stack(8, 2)
    model(torch.ones(3, 8)).sum().backward()
    with OperationLog() as log:
        torch.optim.SGD(model.parameters(), foreach=foreach).zero_grad(set_to_none=False)
    assert (log.read, log.written, log.made) == (0, sum(p.nbytes for p in model.parameters()), 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_filling_grad_costs_what_the_arithmetic_says(dtype: torch.dtype) -> None:
    """After zeros two reads and a write of each gradient beyond what None costs."""
    model, x = linear_stack(16, 2).to(dtype), torch.ones(4, 16, dtype=dtype)
    size = sum(p.nbytes for p in model.parameters())
    logs = []
    for zeros in (False, True):
        model.zero_grad(set_to_none=not zeros)
        loss = model(x).sum()
        with OperationLog() as log:
            loss.backward()
        logs.append(log)
    assert (logs[1].read - logs[0].read, logs[1].written - logs[0].written) == (2 * size, size)
    assert logs[0].names == [name for name in logs[1].names if name != "add_"]


def test_storages_made_and_freed_within() -> None:
    before = torch.ones(3)
    with OperationLog() as log:
        kept = before + 1
        view = kept.view(3, 1)
        gone = before + 2
        del gone, before
    assert (log.made, log.freed) == (2, 1)  # `before` was there before
    del kept, view
    assert log.freed == 1


def made(window: int) -> tuple[nn.Module, list[tuple[torch.Tensor, torch.Tensor]]]:
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    return model, [(torch.randn(16, 32), torch.randint(10, (16,))) for _ in range(window)]


@pytest.mark.parametrize(
    "recipe",
    [Recipe(set_to_none=False, optimizer="adam"), Recipe(accumulate=2, optimizer="momentum")],
    ids=str,
)
def test_the_real_peak_is_what_the_allocator_gave_out(recipe: Recipe) -> None:
    said = real_peak(*made(recipe.accumulate)[:1], recipe, made(recipe.accumulate)[1], cross_entropy)
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

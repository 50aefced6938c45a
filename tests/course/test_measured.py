"""The measured cost of code against formulas."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradlab.course import OperationLog


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


def test_storages_made_within() -> None:
    before = torch.ones(3)
    with OperationLog() as log:
        alive = before + 1
        view = alive.view(3, 1)
        for _ in range(2):
            gone = before + 2
            del gone
    assert log.made == 3  # `before` was there before, a view is its base's storage, and a place used again counts again
    del alive, view

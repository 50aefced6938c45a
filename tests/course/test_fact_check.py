"""What the experiments of notebook 12 share: the same each time, and instruments that notice."""

from __future__ import annotations

import contextlib
import warnings

import pytest
import torch
from torch import nn
from torch.profiler import profile

from gradlab.course import (
    OperationLog,
    batch_grads,
    fails,
    flat_grads,
    flat_weights,
    grad_of,
    is_deprecated,
    linear_stack,
    small_batch,
    small_net,
)


def test_the_network_and_the_data_are_the_same_each_time() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, two = small_net(), small_net()
    assert torch.equal(flat_weights(one), flat_weights(two))
    assert all(torch.equal(*pair) for pair in zip(small_batch(), small_batch(), strict=True))
    assert torch.equal(torch.rand(3), expected)  # the learner's random numbers go on as they were


def test_flat_weights_are_a_copy() -> None:
    model = small_net()
    kept = flat_weights(model)
    nn.init.zeros_(model[0].weight)
    assert kept.numel() == 4 * 8 + 8 + 8 + 1
    assert not torch.equal(kept, flat_weights(model))


def test_gradients_of_a_batch_alone_and_those_in_grad() -> None:
    model, (x, y) = small_net(), small_batch()
    alone = batch_grads(model, x, y)
    assert all(p.grad is None for p in model.parameters())
    for _ in range(2):
        (model(x) - y).square().mean().backward()
    assert torch.allclose(flat_grads(model), 2 * alone)
    assert torch.allclose(batch_grads(model, x, y, "sum"), y.numel() * alone, atol=1e-5)
    kept = flat_grads(model)
    model.zero_grad(set_to_none=False)
    assert kept.any()


def test_the_gradient_of_a_tensor_that_is_no_leaf_is_read_in_silence() -> None:
    w = torch.ones(2, requires_grad=True)
    double = w * 2
    double.sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grad_of(double) is None
    assert grad_of(w) is w.grad


def test_what_fails() -> None:
    assert fails(gone)
    assert fails(torch.zeros(2).view, 3)
    assert not fails(abs, -1)


def test_a_transfer_is_noticed_and_its_absence_too() -> None:
    with OperationLog() as log:
        torch.ones(3).to("meta")
    assert log.transfers == 1
    with OperationLog() as log:
        torch.ones(3).add(1)
    assert (log.transfers, len(log.seen)) == (0, 2)


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
    model, (x, y) = small_net("cpu"), small_batch("cpu")
    nn.functional.mse_loss(model(x), y).backward()
    with OperationLog() as log:
        torch.optim.SGD(model.parameters(), foreach=foreach).zero_grad(set_to_none=False)
    assert (log.read, log.written, log.made) == (0, sum(p.nbytes for p in model.parameters()), 0)


def test_filling_grad_costs_what_the_arithmetic_says() -> None:
    """After zeros two reads and a write of each gradient; after None nothing beyond computing it."""
    model, x = linear_stack(16, 2), torch.ones(4, 16)
    size = sum(p.nbytes for p in model.parameters())
    logs = []
    for zeros in (False, True):
        model.zero_grad(set_to_none=not zeros)
        loss = model(x).sum()
        with OperationLog() as log:
            loss.backward()
        logs.append(log)
    with OperationLog() as computed:
        torch.autograd.grad(model(x).sum(), list(model.parameters()))
    assert (logs[1].read - logs[0].read, logs[1].written - logs[0].written) == (2 * size, size)
    assert logs[0].names == [name for name in logs[1].names if name != "add_"]
    assert set(logs[0].names) <= set(computed.names)


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


def test_none_and_zeros_allocate_equally_often_says_the_allocator_too() -> None:
    x, y = small_batch("cpu")
    counts = {}
    for none in (True, False):
        model = small_net("cpu")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        log, profiled = OperationLog(), profile(profile_memory=True, acc_events=True)
        for watch in (contextlib.nullcontext(), contextlib.nullcontext(), log, profiled):
            with watch:
                optimizer.zero_grad(set_to_none=none)
                nn.functional.mse_loss(model(x), y).backward()
                optimizer.step()
        events = profiled.profiler.kineto_results.events()
        counts[none] = log.made, sum(event.name() == "[memory]" and event.nbytes() > 0 for event in events)
    assert counts[True] == counts[False]


def gone() -> None:
    raise AttributeError("no such name")


def warns() -> None:
    warnings.warn("will be removed", FutureWarning, stacklevel=1)


@pytest.mark.parametrize(("call", "expected"), [(gone, True), (warns, True), (lambda: None, False)])
def test_what_is_deprecated(call: object, expected: bool) -> None:
    assert is_deprecated(call) is expected  # type: ignore[arg-type]

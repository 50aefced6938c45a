"""A Ledger opened between forward and backward: what the graph has saved are activations, until it lets go of them."""

from __future__ import annotations

import gc
import weakref
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from ledger_invariant import look_at_every_change
from torch import Tensor, nn
from torch.autograd.graph import save_on_cpu
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from gradlab import Ledger


@pytest.fixture(autouse=True)
def never_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    look_at_every_change(monkeypatch)
    torch.manual_seed(0)


class Double(torch.autograd.Function):
    """Saves its input and its output."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x * 2
        ctx.save_for_backward(x, y, None)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        x, y, _ = ctx.saved_tensors
        return g * y / x


class Doubled(nn.Module):
    """The Function as a module."""

    def forward(self, x: Tensor) -> Tensor:
        return Double.apply(x)


def parts() -> tuple[nn.Module, Tensor, Tensor]:
    model = nn.Sequential(nn.Linear(8, 100), nn.Tanh(), Doubled(), nn.Dropout(0.5), nn.Linear(100, 10))
    return model, torch.randn(64, 8), torch.randint(0, 10, (64,))


def grads(model: nn.Module) -> list[Tensor]:
    return [p.grad for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("outer", [False, True])
def test_saved_activations_are_found_and_followed(outer: bool) -> None:
    # A Ledger from the start gives the truth.
    model, x, y = parts()
    start = Ledger()
    with start:
        none = start.by_category
        torch.manual_seed(1)
        loss = cross_entropy(model(x), y)
        truth = start.by_category
        loss.backward()
        alone = [g.clone() for g in grads(model)]
    assert truth["activations"] - none["activations"] > 64 * 100 * 4 * 3
    model.zero_grad()
    del loss

    torch.manual_seed(1)
    with Ledger() if outer else nullcontext():
        loss = cross_entropy(model(x), y)
        late = Ledger()
        with late:
            before = late.by_category
            assert before["activations"] - none["activations"] == truth["activations"] - none["activations"]
            assert before["inputs"] == x.nbytes + y.nbytes
            loss.backward()
            after = late.by_category
            assert after["activations"] == none["activations"]
            assert after["inputs"] == x.nbytes + y.nbytes
            assert late.at_peak["activations"] > none["activations"]
    assert all(torch.equal(a, b) for a, b in zip(grads(model), alone, strict=True))


def test_a_graph_that_was_found_is_not_kept_alive() -> None:
    model, x, _ = parts()
    h = model(x)
    alive = weakref.ref(h)
    with Ledger() as ledger:
        before = ledger.by_category
        gc.disable()
        try:
            del h
            assert alive() is None
            assert before["activations"] - ledger.by_category["activations"] > 64 * 100 * 4
        finally:
            gc.enable()


def test_changed_in_place_before_the_ledger_is_an_error() -> None:
    w = nn.Parameter(torch.randn(20))
    h = w.exp()
    loss = h.pow(2).sum()
    with torch.no_grad():
        h.mul_(2)
    with Ledger(), pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    loss = (h := w.exp()).pow(2).sum()
    with Ledger():
        with torch.no_grad():
            h.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_what_hooks_of_others_hold_is_an_activation() -> None:
    w = nn.Parameter(torch.randn(1000))
    with save_on_cpu():
        loss = w.exp().sum()
    with Ledger() as ledger:
        before = ledger.by_category
        loss.backward()
        del loss
        after = ledger.by_category
    assert before["activations"] - after["activations"] == w.nbytes


@pytest.mark.parametrize("again", [False, True])
def test_a_checkpointed_graph_is_not_computed_again(again: bool) -> None:
    model, x, y = parts()
    x.requires_grad_()
    calls = []
    model[0].register_forward_hook(lambda *_: calls.append(1))
    loss = cross_entropy(checkpoint(model, x, use_reentrant=again), y)
    with Ledger() as ledger:
        assert len(calls) == 1
        loss.backward()
        assert len(calls) == 2
        assert ledger.by_category["inputs"] >= y.nbytes
    assert len(grads(model)) == 4


def test_a_ledger_that_was_told_calls_saved_tensors_no_batch() -> None:
    model, x, y = parts()
    loss = cross_entropy(model(x), y)
    with Ledger(model, (), (x, y)) as ledger:
        loss.backward()
    assert max(point.high["activations"] for point in ledger.timeline) >= 64 * 100 * 4
    assert {point.high["inputs"] for point in ledger.timeline} == {x.nbytes + y.nbytes}

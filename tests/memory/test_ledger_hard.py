"""The Ledger against the allocator's own events where memory is hard to follow: one short story each.

A story builds what it needs before its first ``yield``. The total at each later one must be the allocator's,
and the peak its highest between two operations.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import ledger_cases
import pytest
import torch
from ledger_cases import events, peak_between_operations
from torch import Tensor, nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.nn.functional import dropout
from torch.utils.checkpoint import checkpoint

from gradlab import Ledger

STORIES: dict[str, Callable[[], Iterator[None]]] = {}
WORDS = 64  # bytes: numbers that PyTorch wraps as tensors of 8 bytes and hands around inside
where: dict[str, Callable[[], None]] = {"mark": ledger_cases.mark}


def mark() -> None:
    where["mark"]()


def begun(make: Callable[[], Iterator[None]]) -> Callable[[], None]:
    """Return the function that runs a story from its first ``yield`` on, with a mark at each later one."""
    steps = make()
    next(steps)

    def run() -> None:
        for _ in steps:
            mark()

    return run


def story(make: Callable[[], Iterator[None]]) -> Callable[[], Iterator[None]]:
    STORIES[make.__name__] = make
    return make


def small() -> tuple[nn.Sequential, Tensor]:
    return nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 64)), torch.randn(32, 64)


def stepping(name: str, make: Callable[..., torch.optim.Optimizer], to_none: bool = True, **options: Any) -> None:
    def built():
        model, x = small()
        optimizer = make(model.parameters(), **options)
        yield
        for _ in range(3):
            optimizer.zero_grad(set_to_none=to_none)
            yield
            loss = model(x).pow(2).mean()
            yield
            loss.backward()
            yield
            optimizer.step()
            yield

    STORIES[name] = built


stepping("sgd_foreach", torch.optim.SGD, lr=0.1, momentum=0.9, foreach=True)
stepping("adam_foreach", torch.optim.Adam, foreach=True)
stepping("adamw_fused", torch.optim.AdamW, fused=True)


@story
def lbfgs():
    model, x = small()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, history_size=3)
    yield

    def closure():
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        mark()
        return loss

    for _ in range(2):
        optimizer.step(closure)
        yield


@story
def gradients_handed_over_expanded_transposed_accumulated():
    a, b, gradient = nn.Parameter(torch.randn(300, 200)), nn.Parameter(torch.randn(200, 300)), torch.randn(300, 200)
    yield
    for loss in (lambda: a.sum(), lambda: b.t().sum(), lambda: (b.t() * a).sum(), lambda: b.t().mul(2).sum()):
        loss().backward()
        yield
    a.grad = b.grad = None
    yield
    a.backward(gradient)
    yield
    a.grad = None
    (a * 1).backward(gradient)
    yield
    a.grad.zero_()
    (a * 2).sum().backward()
    yield


@story
def a_reentrant_checkpoint():
    model, x = small()
    model.append(nn.Dropout(0.1))
    x.requires_grad_()
    yield
    for _ in range(2):
        h = checkpoint(model, x, use_reentrant=True)
        yield
        h = checkpoint(model, h, use_reentrant=True)
        yield
        h.sum().backward()
        yield
        del h
        yield


@story
def an_optimizer_inside_backward():
    model, x = small()
    optimizers = {p: torch.optim.Adam([p]) for p in model.parameters()}

    def update(p: Tensor) -> None:
        mark()
        optimizers[p].step()
        optimizers[p].zero_grad()
        mark()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(update)
    yield
    for _ in range(2):
        model(x).sum().backward()
        yield


@story
def resized_and_set_storages():
    yield
    a = torch.empty(1000)
    a.resize_(50_000)
    yield
    a.resize_(10)
    yield
    b = torch.randn(5000)
    a.set_(b)
    yield
    del b
    yield
    a.data = torch.randn(7000)
    yield
    a.untyped_storage().resize_(0)
    a.detach()  # the Ledger hears of it with the next operation
    yield


@story
def torch_nested():
    w = nn.Parameter(torch.randn(64, 64))
    yield
    rows = [torch.randn(5, 64), torch.randn(9, 64)]
    n = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)
    yield
    y = n @ w
    yield
    y.sin().values().sum().backward()
    yield


@story
def hooks_of_the_users_own():
    model, x = small()
    yield
    with save_on_cpu():
        y = model(x).pow(2).sum()
        yield
    y.backward()
    yield
    with saved_tensors_hooks(lambda t: t.to(torch.bfloat16), lambda t: t.float()):
        y = model(x).pow(2).sum()
        yield
    y.backward()
    yield


class Exp(torch.autograd.Function):
    """Saves its output, which PyTorch must not keep for ever, and a tensor behind autograd's back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.exp()
        ctx.save_for_backward(y)
        ctx.hidden = x * 2
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * ctx.saved_tensors[0]


@story
def functions_of_the_users_own_and_in_place_layers():
    w, (model, x) = nn.Parameter(torch.randn(100, 100)), small()
    yield
    y = Exp.apply(Exp.apply(w))
    yield
    y.sum().backward()
    yield
    del y
    yield
    h = dropout(model[0](x), 0.5, inplace=True).relu_()
    yield
    model[2](h).sum().backward()
    yield
    out = torch.empty(0)
    torch.mm(x.t(), x, out=out)
    yield


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in STORIES.items()])
def test_every_moment_is_the_allocators(make: Callable[[], Iterator[None]]) -> None:
    """A story runs three times: with the allocator's events, also between operations, then under a Ledger."""
    torch.manual_seed(0)
    where["mark"] = ledger_cases.mark
    truth = events(lambda: begun(make))
    torch.manual_seed(0)
    highest = peak_between_operations(lambda: begun(make))
    torch.manual_seed(0)
    run = begun(make)
    gc.collect()
    ledger, totals = Ledger(), []

    def record_totals() -> None:
        totals.append(ledger.current - start)
        categories = ledger.by_category
        assert sum(categories.values()) == ledger.current
        assert min(categories.values()) >= 0

    where["mark"] = record_totals
    with ledger:
        start = ledger.current
        run()
        peak = ledger.peak - start
    assert len(totals) == len(truth.marks)
    assert [abs(a - b) <= WORDS for a, b in zip(totals, truth.marks, strict=True)] == [True] * len(totals)
    assert abs(peak - highest) <= WORDS
    assert peak <= truth.peak + WORDS
    assert sum(ledger.at_peak.values()) == ledger.peak
    assert min(ledger.at_peak.values()) >= 0
    assert max(point.top for point in ledger.timeline) == ledger.peak


def test_a_sparse_gradient_is_counted_with_its_indices() -> None:
    table, tokens = nn.Embedding(5000, 32, sparse=True), torch.randint(0, 5000, (64,))
    optimizer = torch.optim.SparseAdam(table.parameters())
    with Ledger(table, optimizer) as ledger:
        table(tokens).pow(2).sum().backward()
        assert ledger.by_category["gradients"] == 64 * (32 * 4 + 8)  # a row of floats and an int64 for each word
        optimizer.step()
        assert ledger.by_category["optimizer"] == 2 * 5000 * 32 * 4
        optimizer.zero_grad()
        assert ledger.by_category["gradients"] == 0

"""A Ledger leaves weights, randomness, errors and hooks as they are, and keeps nothing alive."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from ledger_cases import Case, case
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from gradlab import Ledger
from gradlab.memory.storages import StorageRecord

CASES = [
    case("mlp"),
    case("conv", again=True, accumulate=2, set_to_none=False, amp="bf16", optimizer="adamw", clip=0.5),
    case("transformer", accumulate=2, amp="fp16", optimizer="momentum", clip=0.5),
    case("mlp", again=True, set_to_none=False, optimizer="adam"),
]


def left_by(case: Case, watch: Callable[[], Any]) -> list[bytes]:
    """The bits of everything after a run: weights, buffers, gradients, the loss and the random numbers to come."""
    loop = case.ready()
    loop.model.append(nn.Dropout(0.1)) if isinstance(loop.model, nn.Sequential) else None
    with watch():
        loop.run()
    loss = loop.names["loss"].detach()
    grads = [p.grad for p in loop.model.parameters() if p.grad is not None]
    assert grads
    tensors = [*loop.model.state_dict().values(), *grads, loss, torch.get_rng_state(), torch.rand(3)]
    return [t.contiguous().numpy().tobytes() for t in tensors]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_weights_gradients_and_randomness_are_the_same_bits(case: Case) -> None:
    alone = left_by(case, nullcontext)
    assert left_by(case, Ledger) == alone


def patched() -> list[Any]:
    """Everything in PyTorch that a Ledger might hook into or replace."""
    autograd, hooking = torch._C._autograd, (torch.nn.modules.module, sys.modules["torch.optim.optimizer"])
    values = [value for module in hooking for name, value in vars(module).items() if name.startswith("_global")]
    hooks = [dict(value) for value in values if isinstance(value, dict)]
    assert len(hooks) >= 9
    methods = [saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__, torch.get_rng_state]
    functions = [autograd._saved_tensors_hooks_disable, autograd._saved_tensors_hooks_enable]
    stack = [autograd._top_saved_tensors_default_hooks(False), *_get_current_dispatch_mode_stack()]
    return [hooks, methods, functions, stack, autograd._saved_tensors_hooks_is_enabled()]


def model_and_batch() -> tuple[nn.Sequential, Tensor]:
    return nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 8)), torch.randn(16, 32)


@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_hooks_and_patches_are_gone_also_after_an_error(error: type[BaseException] | None, where: str) -> None:
    before = patched()
    model, x = model_and_batch()

    def fail(*_: Any) -> None:
        raise error("stop")

    if error:
        layer = model.append(nn.Sequential(nn.Tanh()))[-1]
        hook_into = layer.register_forward_hook if where == "forward" else model[0].weight.register_hook
        hook_into(fail)
    outer = Ledger()
    with pytest.raises(error) if error else nullcontext(), outer, Ledger(), outer:
        assert patched() != before
        model(x).sum().backward()
    assert patched() == before
    with outer:  # and it works again: no module is thought to be at work still
        torch.randn(10).sum()
    assert outer.timeline[-1].module == ""
    assert patched() == before


@pytest.mark.parametrize("spoil", ["output", "view"])
def test_a_saved_tensor_changed_in_place_is_still_an_error(spoil: str) -> None:
    w = nn.Parameter(torch.randn(20))
    messages = []
    for watch in (nullcontext, Ledger):
        with watch():
            h = w.exp()
            loss = h.pow(2).sum()
            with torch.no_grad():
                (h if spoil == "output" else h[:3]).mul_(2)
            with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
                loss.backward()
        messages.append(str(caught.value).partition("]")[0])
    assert messages[0] == messages[1]


def test_nothing_is_kept_alive() -> None:
    gc.collect()
    model, x = model_and_batch()
    optimizer = torch.optim.Adam(model.parameters())
    named_ledger, bystander = Ledger(model, optimizer, x), torch.randn(5)
    with Ledger() as ledger, named_ledger:
        before = ledger.current  # other tests may have left tensors of their own
        y = model(x)
        y.sum().backward()
        optimizer.step()
    things = [model, *model, *model.parameters(), optimizer, x, y, bystander, model[0].weight.grad]
    alive = [weakref.ref(thing) for thing in things]
    gc.disable()
    try:
        del things, x, y, bystander
        assert [ref() is None for ref in alive[-4:]] == [True, True, True, False]
    finally:
        gc.enable()
    del model, optimizer
    gc.collect()
    assert [ref() for ref in alive] == [None] * len(alive)
    assert ledger.current < before  # and the Ledgers, that live on, know
    assert named_ledger.current == 0


def count(kind: type) -> int:
    """The number of living objects of a class."""
    return sum(type(thing) is kind for thing in gc.get_objects())


@pytest.mark.slow
def test_800_updates_leave_no_more_behind_than_20() -> None:
    model, x = nn.Sequential(nn.Linear(4, 4)), torch.randn(2, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train(updates: int) -> None:
        for _ in range(updates):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()

    ledger = Ledger(model, optimizer, x)
    with ledger:
        train(20)
        gc.collect()
        entries, references, now = count(StorageRecord), count(weakref.ref), ledger.current
        train(400)
        gc.collect()
        objects, blocks = len(gc.get_objects()), sys.getallocatedblocks()
        train(380)
        gc.collect()
        assert count(StorageRecord) == entries
        assert count(weakref.ref) == references
        assert ledger.current == now
        # An interval is an object with two lists, and a number for where each module began: both are bounded.
        assert len(gc.get_objects()) - objects < 3 * 4000 + 1000
        assert sys.getallocatedblocks() - blocks < 250_000
    assert 1000 <= len(ledger.timeline) <= 4001

"""Ledgers and hooks that are closed in any order: all is as it was afterwards, and who stays open counts on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from ledger_invariant import look_at_every_change
from test_ledger_unchanged import model_and_batch, patched
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack, is_in_torch_dispatch_mode

from gradlab import Ledger


def everything() -> list[Any]:
    """The state of PyTorch that a Ledger changes while it is open."""
    return [*patched(), is_in_torch_dispatch_mode()]


def same(before: list[Any], after: list[Any]) -> bool:
    functions = zip((*before[1], *before[2]), (*after[1], *after[2]), strict=True)
    return before == after and all(old is new for old, new in functions)


ORDERS = [*itertools.permutations(range(3))]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_closed_in_any_order_the_others_count_on(order: tuple[int, ...], monkeypatch: Any) -> None:
    look_at_every_change(monkeypatch)
    before = everything()
    model, x = model_and_batch()
    weights = sum(p.nbytes for p in model.parameters())
    ledgers = [Ledger(model, (), x) for _ in order]
    for ledger in ledgers:
        ledger.__enter__()
    for number, closed in enumerate(order):
        model.zero_grad()
        loss = model(x).exp().sum()
        rest = [ledgers[i] for i in order[number:]]
        for ledger in rest:
            now = ledger.by_category
            assert now == rest[0].by_category
            assert now["activations"] == 16 * (64 + 8) * 4
        loss.backward()
        for ledger in rest:
            assert (ledger.by_category["activations"], ledger.by_category["gradients"]) == (0, weights)
        ledgers[closed].__exit__(None, None, None)
    del loss
    assert same(before, everything())
    with ledgers[0]:
        assert not same(before, everything())
    assert same(before, everything())


class Counted(TorchDispatchMode):
    """A mode of another library, which must not be left or entered once more."""

    def __init__(self) -> None:
        super().__init__()
        self.story: list[str] = []

    def __enter__(self) -> Counted:
        self.story.append("in")
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        self.story.append("out")
        super().__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.story.append("op")
        return func(*args, **(kwargs or {}))


def test_modes_and_hooks_of_others_stay_when_a_ledger_goes() -> None:
    before = everything()
    model, x = model_and_batch()
    packed = []
    ledger, mode = Ledger(model), Counted()
    hooks = saved_tensors_hooks(lambda t: packed.append(1) or t.detach(), lambda t: t)
    for block in (ledger, mode, hooks):
        block.__enter__()
    ledger.__exit__(None, None, None)
    assert _get_current_dispatch_mode_stack() == [mode]
    model(x)
    assert len(packed) > 0
    assert mode.story[:2] == ["in", "op"]
    for block in (hooks, mode):
        block.__exit__(None, None, None)
    assert mode.story.count("in") == mode.story.count("out") == 1
    assert same(before, everything())


def test_hooks_older_than_a_ledger_keep_working_in_it() -> None:
    before = everything()
    model, x = model_and_batch()
    packed = []
    hooks = saved_tensors_hooks(lambda t: packed.append(1) or t.detach(), lambda t: t)
    hooks.__enter__()
    with Ledger(model, (), x) as ledger:
        loss = model(x).sum()
        assert len(packed) > 0
        hooks.__exit__(None, None, None)
        del loss
        packed.clear()
        loss = model(x).sum()
        assert packed == []
        assert ledger.by_category["activations"] == 16 * 64 * 4
        loss.backward()
        assert ledger.by_category["activations"] == 0
    assert same(before, everything())


@pytest.mark.parametrize("first", ["generator", "ledger"])
def test_a_generator_left_within_its_ledger(first: str, monkeypatch: Any) -> None:
    look_at_every_change(monkeypatch)
    before = everything()
    model, x = model_and_batch()

    def losses() -> Iterator[Tensor]:
        with Ledger(model):
            while True:
                yield model(x).sum()

    left, ledger = losses(), Ledger()
    if first == "ledger":
        ledger.__enter__()
    next(left).backward()
    if first == "generator":
        ledger.__enter__()
        left.close()
    model.zero_grad()
    model(x).sum().backward()
    assert ledger.by_category["gradients"] >= sum(p.nbytes for p in model.parameters())
    ledger.__exit__(None, None, None)
    next(left, torch.zeros(1, requires_grad=True)).backward()
    left.close()
    assert same(before, everything())

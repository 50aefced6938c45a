"""Optimizers that one line makes again and again over the same weights."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from ... import _torch
from ..events import Site

_MOST = 64
_PARAMS, _ELEMENTS = 3, 64


@dataclass
class _Life:
    """The newest optimizer that a line has made over some weights."""

    param: weakref.ref[Tensor]
    before: int = 0
    """How many went before it, each of which has stepped and left its weights to the next."""
    stepped: bool = False
    lasting: bool = False
    """Does it keep averages or momentum?"""
    written: int = -1
    values: list[Tensor] | None = None
    """Some of the weights after its newest step; only kept from the second one on."""
    parent: _Life | None = None


class OptimizerLives:
    """Follows which optimizers go on where another one, made by the same line, has stopped."""

    def __init__(self) -> None:
        """Start with none."""
        self._newest: dict[tuple[Site, int], _Life] = {}
        self._lives: dict[int, _Life] = {}

    def made(self, number: int, optimizer: Optimizer, site: Site) -> None:
        """Note an optimizer that a line has made."""
        if not (params := _params(optimizer)):
            return
        param = params[0]
        known = self._newest.get((site, id(param)))
        life = _Life(weakref.ref(param))
        if known is not None and known.param() is param:
            life.parent, known.parent = known, None
        if len(self._newest) >= _MOST:
            self._newest.clear()
        self._newest[site, id(param)] = self._lives[number] = life

    def resumes(self, number: int, optimizer: Optimizer, written: int) -> int:
        """Return how many optimizers went before this one, at its first step; 0 if the weights are not theirs."""
        life = self._lives.get(number)
        if life is None or life.stepped or life.parent is None:
            return 0
        parent, life.parent = life.parent, None
        if not parent.stepped:
            return 0
        values = None if parent.values is None else _values(optimizer)
        if parent.values is None or values is None:
            same = written == parent.written
        else:
            same = len(values) == len(parent.values) and all(map(torch.equal, values, parent.values))
        life.before = parent.before + 1 if same else 0
        life.values = []  # from now on they are kept, also if they were somebody else's this time
        return life.before if parent.lasting else 0

    def stepped(self, number: int, optimizer: Optimizer, written: int) -> None:
        """Note a step of an optimizer, after it has run."""
        life = self._lives.get(number)
        if life is None:
            return
        if not life.stepped:
            life.stepped, life.lasting = True, _has_memory(optimizer)
        life.written = written
        if life.values is not None:
            life.values = _values(optimizer)


def _params(optimizer: Optimizer) -> list[Tensor]:
    return [param for group in optimizer.param_groups for param in group["params"]]


def _values(optimizer: Optimizer) -> list[Tensor] | None:
    """Return copies of a few weights, left on their device; None for tensors without values to look at."""
    params = _params(optimizer)[:_PARAMS]
    if any(type(param) not in (Tensor, nn.Parameter) or param.device.type == "meta" for param in params):
        return None
    found = []
    with torch.no_grad(), _torch.disable_current_modes():
        for param in params:
            row = param.detach()
            while row.dim() > 1 and row.numel():
                row = row[0]
            found.append(row.reshape(-1)[:_ELEMENTS].clone())
    return found


def _has_memory(optimizer: Optimizer) -> bool:
    """Does an optimizer keep tensors of the shape of its weights, as momentum and averages are?"""
    for param in _params(optimizer)[:_PARAMS]:
        state: Any = optimizer.state.get(param, {})
        if any(isinstance(value, Tensor) and value.shape == param.shape for value in state.values()):
            return True
    return False

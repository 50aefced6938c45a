"""The exercise ``uncleared``: what the optimizer does not reach."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from ..base import Exercise, Mistake

_MANY = 100  # more names than any model here has; what yields for ever is not waited for


def _names(model: nn.Module, optimizer: torch.optim.Optimizer, *, held: bool = False, groups: int | None = None) -> Any:
    """Return the names of the parameters that the first groups of the optimizer hold, or do not hold."""
    inside = {id(p) for group in optimizer.param_groups[:groups] for p in group["params"]}
    return [name for name, p in model.named_parameters() if (id(p) in inside) is held]


def _unlike(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[str]:
    """Return the names of the parameters whose values are nowhere in the optimizer."""
    inside = [p for group in optimizer.param_groups for p in group["params"]]
    return [name for name, p in model.named_parameters() if not any(torch.equal(p, other) for other in inside)]


class Uncleared(Exercise):
    """Two lists of parameters, and what is in one of them only."""

    name = "uncleared"
    notebook = "04_zero_grad"
    title = "What the optimizer does not reach"
    level, minutes = "easy", 6
    spec = (
        "Write `uncleared(model, optimizer)`: a list of the names, as in `model.named_parameters()`, of the "
        "parameters that `optimizer.zero_grad()` does not reach."
    )
    stub = """
def uncleared(model, optimizer):
    return None  # your answer
"""
    hints = (
        "Where does an optimizer keep its parameters? Print `optimizer.param_groups` in a cell of your own.",
        "It is a list of dicts, one a group; each has its parameters under `'params'`. There may be several groups.",
        "`p in list` compares numbers, not tensors. Whether two are the same tensor is asked with `is`, or by `id(p)`.",
        "`held = {id(p) for group in optimizer.param_groups for p in group['params']}`; then go through "
        "`model.named_parameters()`.",
    )
    mistakes = (
        Mistake(
            "the-others",
            "Those are the ones that it does clear. The others are wanted.",
            lambda model, optimizer: _names(model, optimizer, held=True),
        ),
        Mistake(
            "first-group",
            "You looked into the first parameter group only; an optimizer may have more.",
            lambda model, optimizer: _names(model, optimizer, groups=1),
        ),
        Mistake(
            "same-values",
            "Two layers may hold the same numbers and still be two tensors. Compare with `is`, or by `id(p)`.",
            _unlike,
        ),
        Mistake(
            "frozen",
            "`requires_grad` says whether a gradient is computed, not whether the optimizer holds the parameter.",
            lambda model, optimizer: [name for name, p in model.named_parameters() if not p.requires_grad],
        ),
        Mistake(
            "nothing-there",
            "An empty list, always. If you call `zero_grad()` and look: put something into each `.grad` first.",
            lambda model, optimizer: [],
        ),
    )

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a model of five layers, one a copy of another, and an optimizer whose two groups lack some."""
        layers = [nn.Linear(2, 2) for _ in range(4)]
        layers.append(copy.deepcopy(layers[0]))
        first, second, *_ = dice.sample(range(1, 4), 3)
        layers[dice.choice((first, second))].requires_grad_(False)
        optimizer = torch.optim.SGD([layers[0].weight, *layers[first].parameters()], lr=0.1)
        optimizer.add_param_group({"params": layers[second].parameters()})
        return nn.Sequential(*layers), optimizer

    def right(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> Any:
        """Fill every .grad, clear, and see what is left."""
        for p in model.parameters():
            p.grad = torch.ones_like(p)
        optimizer.zero_grad()
        return sorted(name for name, p in model.named_parameters() if p.grad is not None)

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Compare the names in any order and of any kind of list."""
        said = answer(*arguments)
        plain = isinstance(said, Iterable) and not isinstance(said, (str, Tensor))
        said = list(islice(said, _MANY)) if plain else said
        return sorted(said) if plain and all(isinstance(name, str) for name in said) else said

    def told(self, *arguments: Any) -> str:
        """Say how much there is."""
        model, optimizer = arguments
        groups = [sum(1 for _ in group["params"]) for group in optimizer.param_groups]
        return f"a model of {len(list(model.parameters()))} parameters and an optimizer with groups of {groups}"

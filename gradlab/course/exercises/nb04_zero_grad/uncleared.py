"""The exercise ``uncleared``."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    """Return a model of five layers, one a copy of another, and an optimizer whose two groups lack some."""
    layers = [nn.Linear(2, 2) for _ in range(4)]
    layers.append(copy.deepcopy(layers[0]))
    first, second, _ = rng.sample(range(1, 4), 3)
    layers[rng.choice((first, second))].requires_grad_(False)
    optimizer = SGD([layers[0].weight, *layers[first].parameters()], lr=0.1)
    optimizer.add_param_group({"params": layers[second].parameters()})
    text = "a model of 10 parameters and an optimizer with groups of [3, 2]"
    return Case(nn.Sequential(*layers), optimizer, text=text)


def reference(model: nn.Module, optimizer: Optimizer) -> list[str]:
    """Fill every .grad, clear, and see what is left."""
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.zero_grad()
    return sorted(name for name, parameter in model.named_parameters() if parameter.grad is not None)


def observe(answer: Callable[..., object], model: nn.Module, optimizer: Optimizer) -> object:
    """Return the names in order, whatever they come in."""
    said = answer(model, optimizer)
    if not isinstance(said, Iterable) or isinstance(said, (str, Tensor)):
        return said
    names = list(islice(said, 100))  # what yields for ever is not waited for
    return sorted(names) if all(isinstance(name, str) for name in names) else names


def names_where(chosen: Callable[[Tensor, list[dict[str, Any]]], bool]) -> Callable[..., list[str]]:
    """Return an answer that names the parameters for which ``chosen(parameter, optimizer.param_groups)`` is true."""
    return lambda model, optimizer: [n for n, p in model.named_parameters() if chosen(p, optimizer.param_groups)]


def held(parameter: Tensor, groups: list[dict[str, Any]]) -> bool:
    return any(parameter is other for group in groups for other in group["params"])


DEFINITION = Definition(
    case=case,
    reference=reference,
    observe=observe,
    mistakes={
        "the-others": names_where(held),
        "first-group": names_where(lambda p, groups: not held(p, groups[:1])),
        "same-values": names_where(lambda p, groups: not any(torch.equal(p, q) for g in groups for q in g["params"])),
        "frozen": names_where(lambda p, groups: not p.requires_grad),
        "nothing-there": lambda model, optimizer: [],
    },
)

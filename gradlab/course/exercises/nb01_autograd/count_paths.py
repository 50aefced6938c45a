"""The exercise ``count_paths``."""

from __future__ import annotations

import random
from typing import Any

import torch

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    """Return the grad_fn of a random sum of sums of one weight and of constants."""
    weight = torch.zeros((), requires_grad=True)
    made = [weight]
    for number in range(rng.randint(4, 8)):
        other = 1.0 if number and rng.random() < 0.3 else rng.choice(made)
        made.append(made[-1] + other if rng.random() < 0.7 else rng.choice(made[-2:]) + other)
    loss, node = made[-1], made[-1].grad_fn
    text = f"a graph of {len(nodes(node))} nodes"
    # Each way brings a gradient of 1, and autograd adds them up.
    return Case(node, text=text, expect=lambda: int(torch.autograd.grad(loss, weight)[0]))


def ways(node: Any, at_constant: int = 0) -> int:
    if node is None:
        return at_constant
    return sum(ways(target, at_constant) for target, _ in node.next_functions) if node.next_functions else 1


def below(node: Any) -> list[Any]:
    return [target for target, _ in node.next_functions if target is not None]


def nodes(node: Any) -> set[Any]:
    return {node}.union(*map(nodes, below(node)))


def longest(node: Any) -> int:
    return max((1 + longest(target) for target in below(node)), default=0)


DEFINITION = Definition(
    case=case,
    mistakes={
        "arrived-once": lambda node: 1,
        "visited-once": lambda node: sum(not below(target) for each in nodes(node) for target in below(each)),
        "dead-ends": lambda node: ways(node, at_constant=1),
        "nodes": lambda node: len(nodes(node)),
        "longest": longest,
        "off-by-one": lambda node: ways(node) + 1,
    },
)

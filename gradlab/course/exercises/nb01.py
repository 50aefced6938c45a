"""The checks of the exercises in notebook 01; ``nb01.md`` has their tasks, hints and solutions."""

from __future__ import annotations

import random
from collections.abc import Callable
from operator import add, mul
from typing import Any

import torch

from .checking import Case, Definition, variant


def keeps_grad_case(rng: random.Random) -> Case:
    """Return a case with tensors by description, some of them after a call to retain_grad() or requires_grad_()."""
    w, x, f = torch.randn(3, requires_grad=True), torch.randn(3), torch.randn(3, requires_grad=True)
    f.requires_grad_(False)
    h = w * x * f
    k, d = torch.tanh(h), h.detach()
    tensors = {"w, a weight": w, "x, data": x, "f, a weight that was frozen": f}
    for name, tensor, method in (
        ("h = w * x * f", h, "retain_grad"),
        ("k = tanh(h)", k, "retain_grad"),
        ("d = h.detach()", d, "requires_grad_"),
    ):
        if called := rng.random() < 0.5:
            getattr(tensor, method)()
        tensors[f"{name}, with {method}()" if called else name] = tensor
    return (tensors,), ""


keeps_grad = Definition(
    case=keeps_grad_case,
    observe=lambda answer, tensors: {name: answer(tensor) for name, tensor in tensors.items()},
    mistakes={
        "requires-grad": lambda tensor: tensor.requires_grad,
        "every-leaf": lambda tensor: tensor.is_leaf,
        "leaf-or-retained": lambda tensor: tensor.is_leaf or tensor.retains_grad,
        "no-retain": lambda tensor: tensor.requires_grad and tensor.is_leaf,
    },
)


def complete_value_case(rng: random.Random) -> Case:
    """Return a case with three named numbers, and the steps of an expression in which one value is used twice."""
    numbers = {name: float(rng.choice((-3, -2, -1, 1, 2, 3))) for name in "abc"}
    texts, steps = list(numbers), []
    for left, right in ((0, 1), (3, 2), (4, rng.choice((0, 3, 3)))):
        call = rng.choice((add, mul))
        steps.append((call, left, right))
        texts.append(f"({texts[left]} {'+' if call is add else '*'} {texts[right]})")
    return (numbers, steps), f"{texts[-1][1:-1]}, with a = {numbers['a']:g}, b = {numbers['b']:g}, c = {numbers['c']:g}"


def gradients_of(value: Any, numbers: dict[str, float], steps: list[tuple[Callable[..., Any], int, int]]) -> object:
    """Evaluate ``steps`` with the class ``value``, call backward(), and return the gradients of ``numbers`` by name."""
    leaves = {name: value(number) for name, number in numbers.items()}
    results = list(leaves.values())
    for call, left, right in steps:
        results.append(call(results[left], results[right]))
    results[-1].backward()
    return {name: leaf.grad for name, leaf in leaves.items()}


complete_value = Definition(
    case=complete_value_case,
    observe=gradients_of,
    mistakes={
        "overwrites": variant("complete_value", ("+=", "=")),
        "own-factor": variant("complete_value", ("+=", "="), ("other.data, self.data)", "self.data, other.data)")),
        "slope-alone": variant("complete_value", ("+=", "="), ("arriving * slope", "slope")),
        "sum-passed-on": variant("complete_value", ("arriving * slope", "self.grad * slope")),
    },
)


def two_in_a_row_case(rng: random.Random) -> Case:
    numbers = tuple(float(rng.choice((-3, -2, 2, 3, 4))) for _ in range(3))
    goal = numbers[0] * numbers[1] * numbers[2] + rng.choice((-3.0, -2.0, 2.0, 3.0))
    return (*numbers, goal), "x = {:g}, w1 = {:g}, w2 = {:g}, goal = {:g}".format(*numbers, goal)


two_in_a_row = Definition(
    case=two_in_a_row_case,
    mistakes={
        "no-two": lambda x, w1, w2, goal: ((w2 * w1 * x - goal) * w2 * x, (w2 * w1 * x - goal) * w1 * x),
        "skips-a-node": lambda x, w1, w2, goal: (2 * (w2 * w1 * x - goal) * x, 2 * (w2 * w1 * x - goal) * w1 * x),
        "x-for-h": lambda x, w1, w2, goal: (2 * (w2 * w1 * x - goal) * w2 * x, 2 * (w2 * w1 * x - goal) * x),
    },
)

"""The exercise ``memory_gradient``."""

from __future__ import annotations

import random
from itertools import accumulate
from typing import Any

import torch

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    w = rng.choice((-1, 1)) * rng.uniform(0.4, 1.4)
    xs = [round(rng.choice((-1, 1)) * rng.uniform(0.3, 2), 2) for _ in range(rng.randint(3, 5))]
    goal = round(memory(w, xs)[-1] + rng.choice((-1, 1)) * rng.uniform(0.5, 2), 2)
    return Case(round(w, 2), xs, goal, text=f"w={round(w, 2)}, xs={xs}, goal={goal}")


def memory(w: Any, xs: list[float]) -> list[Any]:
    """Return h before the first step and after each."""
    return list(accumulate(xs, lambda h, x: w * h + x, initial=0.0))


def reference(w: float, xs: list[float], goal: float) -> float:
    weight = torch.tensor(w, dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad((memory(weight, xs)[-1] - goal) ** 2, weight)[0].item()


def slope(w: float, xs: list[float], goal: float) -> float:
    """Return the derivative of the loss with respect to the last h."""
    return 2 * (memory(w, xs)[-1] - goal)


DEFINITION = Definition(
    case=case,
    reference=reference,
    mistakes={
        "writes": lambda w, xs, goal: 0.0,
        "last-use-only": lambda w, xs, goal: slope(w, xs, goal) * memory(w, xs)[-2],
        "not-passed-on": lambda w, xs, goal: slope(w, xs, goal) * sum(memory(w, xs)[:-1]),
        "mean": lambda w, xs, goal: reference(w, xs, goal) / len(xs),
        "lost-two": lambda w, xs, goal: reference(w, xs, goal) / 2,
    },
)

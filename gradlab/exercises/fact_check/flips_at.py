"""The exercise ``flips_at``: where D3 flips."""

from __future__ import annotations

import math
import random
from typing import Any

import torch
from torch import Tensor

from ..base import Exercise, Mistake


def _settles_below(xs: list[float], divide: bool) -> float:
    """Find by trial the lr from which on the loop of the exercise grows, many values of lr at once."""
    low, high, many = 1e-3, 100.0, 32
    for _ in range(3):
        lrs = torch.logspace(math.log10(low), math.log10(high), many, dtype=torch.float64)
        w = torch.ones(many, dtype=torch.float64, requires_grad=True)
        for _ in range(5):
            w.grad = None
            for x in xs:
                loss = ((w * x) ** 2).sum()
                (loss / len(xs) if divide else loss).backward()
            with torch.no_grad():
                w -= lrs * _grad(w)
        settled = int((w.detach().abs() < 1).sum())
        low, high = lrs[max(settled - 1, 0)].item(), lrs[min(settled, many - 1)].item()
    return (low * high) ** 0.5


def _grad(w: Tensor) -> Tensor:
    assert w.grad is not None
    return w.grad


class FlipsAt(Exercise):
    """D3 has a number in it: from which lr on does it not hold?"""

    name = "flips_at"
    notebook = "12_fact_check"
    title = "Where D3 flips"
    level, minutes = "medium", 8
    spec = (
        "A model with one weight, `w * x`, and the loss `(w * x - y) ** 2`, one sample at a time, one SGD step after "
        "all samples in the list `xs`: write `flips_at(xs, divide)`, the lr above which it does not learn, where "
        "`divide` says whether each loss is divided by `len(xs)`."
    )
    stub = """
def flips_at(xs, divide):
    return None  # your answer
"""
    hints = (
        "What is the second derivative (the curvature) of one loss, seen from w?",
        "That of (w * x - y) ** 2 is 2 * x ** 2. Adding up gradients adds up curvatures.",
        "Plain SGD settles as long as lr * curvature < 2 (notebook 03).",
    )
    mistakes = (
        Mistake(
            "lost-two",
            "Twice too large: the second derivative of a square has a 2 in it.",
            lambda xs, divide: 2 / sum(x * x for x in xs) * (len(xs) if divide else 1),
        ),
        Mistake(
            "best-lr",
            "That lr reaches the bottom in one step. It can be larger, and still settle.",
            lambda xs, divide: 1 / sum(2 * x * x for x in xs) * (len(xs) if divide else 1),
        ),
        Mistake(
            "never-divides",
            "With `divide` the curvature is divided by the window, too.",
            lambda xs, divide: 1 / sum(x * x for x in xs),
        ),
        Mistake(
            "always-divides",
            "Without `divide` the gradients are added up, and nobody divides them.",
            lambda xs, divide: len(xs) / sum(x * x for x in xs),
        ),
        Mistake(
            "wrong-way",
            "The other way round: a smaller gradient allows a larger lr.",
            lambda xs, divide: 1 / sum(x * x for x in xs) / (len(xs) if divide else 1),
        ),
        Mistake(
            "square-of-the-sum",
            "You squared the sum. Each sample has its own curvature: sum the squares.",
            lambda xs, divide: 1 / sum(xs) ** 2 * (len(xs) if divide else 1),
        ),
    )
    relative = 0.01  # it is measured, not computed

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return two to six samples, and whether the loss is divided."""
        return [round(dice.uniform(0.5, 5), 1) for _ in range(dice.randint(2, 6))], dice.random() < 0.5

    def right(self, xs: list[float], divide: bool) -> Any:
        """Let the loop run with many values of lr, and look where it turns."""
        return _settles_below(xs, divide)

    def told(self, *arguments: Any) -> str:
        """Name both."""
        return f"xs={arguments[0]}, divide={arguments[1]}"

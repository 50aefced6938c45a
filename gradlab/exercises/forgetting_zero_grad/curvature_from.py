"""The exercise ``curvature_from``: from the swing to the curvature."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import Any

from ..base import Exercise, Mistake
from .shared import swing


class CurvatureFrom(Exercise):
    """The formula of the half-period, the other way round."""

    name = "curvature_from"
    notebook = "03_forgetting_zero_grad"
    title = "From the swing to the curvature"
    level, minutes = "medium", 8
    spec = (
        "You see a loss that swings, and count the updates from one peak of the loss to the next: write "
        "`curvature_from(lr, loss_period)`, the curvature of the bowl."
    )
    stub = """
def curvature_from(lr, loss_period):
    return None  # your answer
"""
    hints = (
        "How does the period of the loss compare with the half-period of the weight?",
        "They are the same. Solve the formula for the half-period for the curvature.",
        "Take the cosine of both sides of pi / loss_period = arccos(1 - lr * curvature / 2).",
    )
    mistakes = (
        Mistake(
            "times-lr", "That is lr times the curvature: divide by lr.", lambda lr, t: 2 * (1 - math.cos(math.pi / t))
        ),
        Mistake(
            "no-arccos",
            "Good for slow swings only: that is the formula without its arccos.",
            lambda lr, t: (math.pi / t) ** 2 / lr,
        ),
        Mistake(
            "whole-period",
            "You took the loss for the weight: the loss repeats every half-period.",
            lambda lr, t: 2 * (1 - math.cos(2 * math.pi / t)) / lr,
        ),
        Mistake(
            "lost-two",
            "Half of it: where does the 2 of lr * curvature / 2 go?",
            lambda lr, t: (1 - math.cos(math.pi / t)) / lr,
        ),
        Mistake(
            "degrees",
            "Degrees? math.cos wants radians, and half a turn is math.pi.",
            lambda lr, t: 2 * (1 - math.cos(180 / t)) / lr,
        ),
    )
    relative = 0.02  # the period is measured, not computed

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return an lr and the period that a swing on a bowl of random curvature shows when it is measured."""
        lr, product = dice.uniform(0.01, 0.2), dice.uniform(0.5, 3.0)
        self._curvature = product / lr
        return lr, _measured_period(swing(product))

    def right(self, lr: float, loss_period: float) -> Any:
        """Return the curvature that the swing was made with."""
        return self._curvature

    def told(self, *arguments: Any) -> str:
        """Name both."""
        return f"lr={arguments[0]:.3f}, loss_period={arguments[1]:.2f}"


def _measured_period(path: list[float]) -> float:
    """Return the mean number of updates from one pass through 0 to the next, which is a period of the loss."""
    steps = enumerate(pairwise(path))
    passes = [t + a / (a - b) for t, (a, b) in steps if (a > 0) != (b > 0)]
    return (passes[-1] - passes[0]) / (len(passes) - 1)

"""The exercise ``curvature_from``."""

from __future__ import annotations

import math
import random
from itertools import pairwise

from ..definition import Case, Definition
from .shared import swing


def case(rng: random.Random) -> Case:
    lr, product = rng.uniform(0.01, 0.2), rng.uniform(0.5, 3.0)
    period = measured_period(swing(product))
    return Case(lr, period, text=f"lr={lr:.3f}, loss_period={period:.2f}", expect=product / lr)


def measured_period(path: list[float]) -> float:
    """Return the mean number of updates from one pass through 0 to the next, which is a period of the loss."""
    passes = [t + a / (a - b) for t, (a, b) in enumerate(pairwise(path)) if (a > 0) != (b > 0)]
    return (passes[-1] - passes[0]) / (len(passes) - 1)


DEFINITION = Definition(
    case=case,
    mistakes={
        "times-lr": lambda lr, period: 2 * (1 - math.cos(math.pi / period)),
        "no-arccos": lambda lr, period: (math.pi / period) ** 2 / lr,
        "whole-period": lambda lr, period: 2 * (1 - math.cos(2 * math.pi / period)) / lr,
        "lost-two": lambda lr, period: (1 - math.cos(math.pi / period)) / lr,
        "degrees": lambda lr, period: 2 * (1 - math.cos(180 / period)) / lr,
    },
    relative=0.02,  # the period is measured, not computed
)

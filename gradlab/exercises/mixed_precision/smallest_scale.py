"""The exercise ``smallest_scale``: the smallest scale that saves them all."""

from __future__ import annotations

import math
import random
from typing import Any

import torch
from torch import Tensor

from ..base import Exercise, Mistake


def _power_above(value: float) -> float:
    """Return the smallest power of two, from 1, that is not below a value."""
    return 2.0 ** max(0, math.ceil(math.log2(value)))


class SmallestScale(Exercise):
    """Where fp16 begins, and what rounding does there."""

    name = "smallest_scale"
    notebook = "08_mixed_precision"
    title = "The smallest scale that saves them all"
    level, minutes = "medium", 8
    spec = (
        "Write `smallest_scale(gradients)`: the smallest power of two (1, 2, 4, ...) with which no gradient that "
        "is not 0 becomes 0 in fp16, for a float32 tensor that may hold zeros and negative numbers."
    )
    stub = """
def smallest_scale(gradients):
    return None  # your answer
"""
    hints = (
        "You need not know any limit: try 1, then 2, then 4, and look at what `(gradients * scale).half()` does.",
        "Count the zeros before and after: `(gradients != 0).sum()` must stay what it was.",
    )
    mistakes = (
        Mistake(
            "no-rounding",
            "Twice as much as needed: fp16 rounds to the nearest number, so what is above half of its smallest one is "
            "rounded up to it and not down to 0.",
            lambda gradients: _power_above(2.0**-24 / _smallest(gradients)),
        ),
        Mistake(
            "normal",
            "Far more than needed: you go by the smallest number that has full precision (finfo.tiny). Below it come "
            "the subnormal numbers, and they are not 0.",
            lambda gradients: _power_above(2.0**-14 / _smallest(gradients)),
        ),
        Mistake(
            "no-power",
            "Large enough, nearly, but not a power of two: multiplying by another number may round every gradient.",
            lambda gradients: max(1.0, 2.0**-25 / _smallest(gradients)),
        ),
        Mistake(
            "signs",
            "The negative gradients do not count for you: it is the size that must not be too small.",
            lambda gradients: _power_above(1.0001 * 2.0**-25 / float(gradients[gradients > 0].min())),
        ),
        Mistake(
            "largest",
            "That is the other end: the largest scale with which none becomes inf. It saves them, too, but the "
            "smallest one is wanted.",
            lambda gradients: 2.0 ** math.floor(math.log2(65519.0 / float(gradients.abs().max()))),
        ),
    )

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return gradients of many sizes: the smallest is negative, some are 0."""
        sizes = 2.0 ** (torch.rand(40) * 12 - 30)
        sizes[dice.randrange(40)] = 2.0 ** dice.uniform(-40.0, -36.0)
        signs = torch.where(torch.rand(40) < 0.5, -1.0, 1.0)
        signs[sizes.argmin()] = -1.0
        return (torch.cat([sizes * signs, torch.zeros(5), 2.0**-30 * torch.ones(1)])[torch.randperm(46)],)

    def right(self, gradients: Tensor) -> Any:
        """Try one scale after the other on the type itself."""
        scale = 1.0
        while (gradients * scale).half().count_nonzero() < gradients.count_nonzero():
            scale *= 2
        return scale

    def told(self, *arguments: Any) -> str:
        """Name the smallest size."""
        return f"gradients of which the smallest is {_smallest(arguments[0]):.3g} in size"


def _smallest(gradients: Tensor) -> float:
    return float(gradients[gradients != 0].abs().min())

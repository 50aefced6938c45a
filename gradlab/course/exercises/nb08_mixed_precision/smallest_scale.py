"""The exercise ``smallest_scale``."""

from __future__ import annotations

import math
import random

import torch
from torch import Tensor

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    """Return gradients of many sizes: the smallest is negative, some are 0."""
    sizes = 2.0 ** (torch.rand(40) * 12 - 30)
    sizes[rng.randrange(40)] = 2.0 ** rng.uniform(-40.0, -36.0)
    signs = torch.where(torch.rand(40) < 0.5, -1.0, 1.0)
    signs[sizes.argmin()] = -1.0
    gradients = torch.cat([sizes * signs, torch.zeros(5), 2.0**-30 * torch.ones(1)])[torch.randperm(46)]
    return Case(gradients, text=f"gradients of which the smallest is {smallest(gradients):.3g} in size")


def reference(gradients: Tensor) -> float:
    """Try one scale after the other on the type itself."""
    scale = 1.0
    while (gradients * scale).half().count_nonzero() < gradients.count_nonzero():
        scale *= 2
    return scale


def smallest(gradients: Tensor) -> float:
    return float(gradients[gradients != 0].abs().min())


def power_above(value: float) -> float:
    """Return the smallest power of two, from 1, that is not below a value."""
    return 2.0 ** max(0, math.ceil(math.log2(value)))


DEFINITION = Definition(
    case=case,
    reference=reference,
    mistakes={
        "no-rounding": lambda gradients: power_above(2.0**-24 / smallest(gradients)),
        "normal": lambda gradients: power_above(2.0**-14 / smallest(gradients)),
        "no-power": lambda gradients: max(1.0, 2.0**-25 / smallest(gradients)),
        "signs": lambda gradients: reference(gradients[gradients > 0]),
        "largest": lambda gradients: 2.0 ** math.floor(math.log2(65519.0 / float(gradients.abs().max()))),
    },
)

"""The exercise ``period_of``."""

from __future__ import annotations

import math
import random

from ..definition import Case, Definition
from .shared import swing


def case(rng: random.Random) -> Case:
    period = rng.uniform(5, 20)
    losses = [w * w / 2 for w in swing(2 * (1 - math.cos(math.pi / period)), 399)]
    begin = ", ".join(f"{loss:.2f}" for loss in losses[:6])
    return Case(losses, text=f"losses that begin {begin} ...", expect=period)


def peaks(losses: list[float]) -> list[int]:
    return [t for t in range(1, len(losses) - 1) if losses[t - 1] < losses[t] >= losses[t + 1]]


def mean_period(losses: list[float]) -> float:
    found = peaks(losses)
    return (found[-1] - found[0]) / (len(found) - 1)


DEFINITION = Definition(
    case=case,
    mistakes={
        "weight-period": lambda losses: 2 * mean_period(losses),
        "valleys": lambda losses: mean_period(losses) / 2,
        "count": lambda losses: len(peaks(losses)),
        "first-peak": lambda losses: peaks(losses)[0],
        "two-peaks": lambda losses: peaks(losses)[1] - peaks(losses)[0],
    },
    rounds=60,  # from the first peak to the second is within 3% in three cases of four
    relative=0.03,
    axes=("", "updates"),
)

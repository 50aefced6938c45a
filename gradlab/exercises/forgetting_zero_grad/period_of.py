"""The exercise ``period_of``: read the period off the curve."""

from __future__ import annotations

import math
import random
from typing import Any

from ..base import Exercise, Mistake
from .shared import swing


class PeriodOf(Exercise):
    """Counting peaks, and what lies between them."""

    name = "period_of"
    notebook = "03_forgetting_zero_grad"
    title = "Read the period off the curve"
    level, minutes = "harder", 12
    spec = (
        "Write `period_of(losses)`: given the losses of a run that swings, a list of 400 numbers, return the mean "
        "number of updates from one peak to the next, to within 3%."
    )
    stub = """
def period_of(losses):
    return None  # your answer
"""
    hints = (
        "A peak is larger than its two neighbours. Count the updates between the first peak and the last, "
        "and divide: by what?",
        "From the first of five peaks to the fifth there are four periods.",
    )
    mistakes = (
        Mistake(
            "weight-period",
            "That is the period of the weight, twice that of the loss.",
            lambda losses: 2 * _period(losses),
        ),
        Mistake(
            "valleys", "That is half of it: did you count the valleys as well?", lambda losses: _period(losses) / 2
        ),
        Mistake(
            "count",
            "That is the number of peaks, not the updates between them.",
            lambda losses: len(_peaks(losses)),
        ),
        Mistake("first-peak", "That is where the first peak is.", lambda losses: _peaks(losses)[0]),
        Mistake(
            "two-peaks",
            "From the first peak to the second: a whole number, and too coarse. Take the mean over all of them.",
            lambda losses: _peaks(losses)[1] - _peaks(losses)[0],
        ),
    )
    rounds = 60  # from the first peak to the second is within 3% in three cases of four
    relative = 0.03
    axes = ("", "updates")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return the losses of a swing that is five to twenty updates long."""
        self._wanted = dice.uniform(5, 20)
        return ([w * w / 2 for w in swing(2 * (1 - math.cos(math.pi / self._wanted)), 399)],)

    def right(self, losses: list[float]) -> Any:
        """Return the period that the swing was made with."""
        return self._wanted

    def told(self, *arguments: Any) -> str:
        """Show how the losses begin."""
        return "losses that begin " + ", ".join(f"{loss:.2f}" for loss in arguments[0][:6]) + " ..."


def _peaks(losses: list[float]) -> list[int]:
    return [t for t in range(1, len(losses) - 1) if losses[t - 1] < losses[t] >= losses[t + 1]]


def _period(losses: list[float]) -> float:
    peaks = _peaks(losses)
    return (peaks[-1] - peaks[0]) / (len(peaks) - 1)

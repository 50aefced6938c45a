"""The exercise ``largest_batch``: the largest batch."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from ...memory import Ledger
from ..base import Exercise, Mistake


class _Meter:
    """Measures the peak of an update with so many rows; it may be asked three times, and remembers for what."""

    __name__ = "peak_of"

    def __init__(self, widths: list[int], peaks: dict[Any, int], asked: list[int]) -> None:
        """Keep what was measured in ``peaks``, and the rows that the learner asks for in ``asked``."""
        self.widths, self.peaks, self.asked, self.calls = tuple(widths), peaks, asked, 0

    def __call__(self, rows: int) -> int:
        """Return the peak in bytes, three times."""
        self.calls += 1
        if self.calls > 3:
            raise RuntimeError("peak_of is called a fourth time; three are allowed, and two are enough")
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= 4096:
            raise ValueError(f"peak_of wants a whole number of rows, 1 to 4,096, not {rows!r}")
        self.asked.append(rows)
        return self.at(rows)

    def at(self, rows: int) -> int:
        """Return the peak in bytes, without counting the call."""
        if (self.widths, rows) not in self.peaks:
            parts = [part for a, b in pairwise(self.widths) for part in (nn.Linear(a, b), nn.ReLU())]
            model, x = nn.Sequential(*parts), torch.ones(rows, self.widths[0])
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            with Ledger(model, [optimizer], x) as ledger:
                model(x).square().mean().backward()
                optimizer.step()
            self.peaks[self.widths, rows] = ledger.peak
        return self.peaks[self.widths, rows]

    def line(self, few: int, many: int) -> tuple[float, float]:
        """Return the straight line through two measurements: bytes at 0 rows, bytes a row."""
        slope = (self.at(many) - self.at(few)) / (many - few)
        return self.at(few) - slope * few, slope


def _through(meter: _Meter, budget: int) -> int:
    """Use the rows that the learner measured, wherever they are."""
    few, many = [*sorted(set(meter.asked)), 1, 2][:2] if len(set(meter.asked)) > 1 else (1, 2)
    constant, slope = meter.line(few, many)
    return int((budget - constant) // slope) if slope else 0


def _share(meter: _Meter, budget: int) -> int:
    rows = meter.asked[0] if meter.asked else 200
    return int(budget // (meter.at(rows) / rows))


def _sound(meter: _Meter, budget: int) -> float:
    constant, slope = meter.line(150, 200)
    return (budget - constant) / slope


class LargestBatch(Exercise):
    """A line through two measurements, if both are on it."""

    name = "largest_batch"
    notebook = "09_gpu_memory"
    title = "The largest batch"
    level, minutes = "harder", 15
    spec = (
        "Write `largest_batch(peak_of, budget)`: the largest batch, a whole number of rows, with which an update of "
        "some model stays within `budget` bytes; `peak_of(rows)` measures the peak of an update with so many rows, and "
        "may be called three times."
    )
    stub = """
def largest_batch(peak_of, budget):
    return None  # your answer
"""
    hints = (
        "On the mountain each row adds the same number of bytes. So the peak is a straight line: a part that does not "
        "grow, and a part for each row.",
        "Two points give a line, if both are on it. With very few rows the peak stands elsewhere: at the end of "
        "`backward()`, where the gradients are. Which numbers of rows are safe?",
        "Measure 150 and 200 rows. Bytes a row: the difference, divided by 50. Then see how many more rows fit into "
        "what is left of the budget, rounded down.",
    )
    mistakes = (
        Mistake("share", "Bytes divided by rows: part of the peak does not grow with the rows.", _share),
        Mistake(
            "no-constant",
            "Only what each row adds is in it: weights and gradients take their part of the budget first.",
            lambda meter, budget: int(budget // meter.line(150, 200)[1]),
        ),
        Mistake(
            "too-few-rows", "With so few rows the peak is not on the mountain yet: measure larger batches.", _through
        ),
        Mistake("one-too-many", "One row too many: round down.", lambda meter, budget: int(_sound(meter, budget)) + 1),
        Mistake("not-whole", "A part of a row is none: round down to a whole number.", _sound),
    )
    rounds = 3
    seconds = 20.0  # a measurement takes its time where many run at once

    def __init__(self) -> None:
        """Keep measurements, so that trying typical mistakes does not repeat them."""
        self._peaks: dict[Any, int] = {}
        self._asked: dict[Any, list[int]] = {}

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a meter for a random net, and a budget that is made from the answer."""
        widths = [dice.randrange(24, 48)] * dice.randrange(4, 7)
        self._right = dice.randrange(250, 400)
        meter = _Meter(widths, self._peaks, self._asked.setdefault((*widths, self._right), []))
        at, more = (meter.at(self._right + one) for one in (0, 1))
        return meter, at + dice.randrange(more - at)

    def right(self, peak_of: Any, budget: int) -> Any:
        """Return the batch that the budget was made from."""
        return self._right

    def told(self, *arguments: Any) -> str:
        """Say how much there is."""
        return f"a budget of {arguments[1]:,} bytes"

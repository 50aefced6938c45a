"""The exercise ``largest_batch``."""

from __future__ import annotations

import random
from collections import defaultdict
from functools import cache

import torch
from torch import nn

from ....memory import Ledger
from ..definition import Case, Definition

ASKED: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)  # the rows measured by answers, by case


@cache  # the typical mistakes measure again
def peak(width: int, layers: int, rows: int) -> int:
    """Measure the peak of an update in bytes."""
    parts = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())]
    model, x = nn.Sequential(*parts), torch.ones(rows, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with Ledger(model, [optimizer], x) as ledger:
        model(x).square().mean().backward()
        optimizer.step()
    return ledger.peak


class PeakOf:
    """What an answer measures with, three times; it notes the rows."""

    __name__ = "peak_of"

    def __init__(self, width: int, layers: int, asked: list[int]) -> None:
        self.net, self.asked, self.calls = (width, layers), asked, 0

    def __call__(self, rows: int) -> int:
        """Return the peak in bytes."""
        self.calls += 1
        if self.calls > 3:
            raise RuntimeError("peak_of is called a fourth time; three are allowed, and two are enough")
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= 4096:
            raise ValueError(f"peak_of wants a whole number of rows, 1 to 4,096, not {rows!r}")
        self.asked.append(rows)
        return peak(*self.net, rows)

    def line(self, few: int, many: int) -> tuple[float, float]:
        """Return the straight line through two measurements: bytes at 0 rows, bytes a row."""
        slope = (peak(*self.net, many) - peak(*self.net, few)) / (many - few)
        return peak(*self.net, few) - slope * few, slope


def case(rng: random.Random) -> Case:
    """Return a random net, and a budget that is made from the answer."""
    width, layers, rows = rng.randrange(24, 48), rng.randrange(4, 7) - 1, rng.randrange(250, 400)
    fits, too_much = peak(width, layers, rows), peak(width, layers, rows + 1)
    budget = fits + rng.randrange(too_much - fits)
    peak_of = PeakOf(width, layers, ASKED[width, layers, rows])
    return Case(peak_of, budget, text=f"a budget of {budget:,} bytes", expect=rows)


def share(peak_of: PeakOf, budget: int) -> int:
    rows = peak_of.asked[0] if peak_of.asked else 200
    return int(budget // (peak(*peak_of.net, rows) / rows))


def too_few_rows(peak_of: PeakOf, budget: int) -> int:
    """Use the rows that the learner measured, wherever they are."""
    few, many = sorted(set(peak_of.asked))[:2] if len(set(peak_of.asked)) > 1 else (1, 2)
    constant, slope = peak_of.line(few, many)
    return int((budget - constant) // slope) if slope else 0


def exact(peak_of: PeakOf, budget: int) -> float:
    constant, slope = peak_of.line(150, 200)
    return (budget - constant) / slope


DEFINITION = Definition(
    case=case,
    mistakes={
        "share": share,
        "no-constant": lambda peak_of, budget: int(budget // peak_of.line(150, 200)[1]),
        "too-few-rows": too_few_rows,
        "one-too-many": lambda peak_of, budget: int(exact(peak_of, budget)) + 1,
        "not-whole": exact,
    },
    rounds=3,
    seconds=20.0,  # a measurement takes its time where many run at once
)

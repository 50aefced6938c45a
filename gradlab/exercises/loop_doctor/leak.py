"""The exercise ``leak``: how fast does it leak?."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from ..base import Exercise, Mistake


def _differences(alive: Sequence[int]) -> list[int]:
    return [later - before for before, later in pairwise(alive)]


class Leak(Exercise):
    """Reading a slope off a curve that has other bends."""

    name = "leak"
    notebook = "10_loop_doctor"
    title = "How fast does it leak?"
    level, minutes = "harder", 10
    spec = (
        "Write `leak(alive)`: given the bytes that are alive after each of 200 updates, return how many bytes are lost "
        "at each update, 0 if nothing leaks, to within 3%."
    )
    stub = """
def leak(alive):
    return None  # your answer
"""
    hints = (
        "Look at the differences from one update to the next. What do most of them have in common?",
        "A few differences are far off. The mean believes them all. Who does not?",
    )
    mistakes = (
        Mistake(
            "warm-up",
            "The first updates are in it, and they are no leak: the optimizer makes its state.",
            lambda alive: (alive[-1] - alive[0]) / 199,
        ),
        Mistake("total", "That is for all updates together: divide.", lambda alive: alive[-1] - alive[0]),
        Mistake("range", "That is the whole range, warm-up and all.", lambda alive: max(alive) - min(alive)),
        Mistake(
            "largest",
            "That is the largest step up: an epoch's end, or the warm-up.",
            lambda alive: max(_differences(alive)),
        ),
        Mistake(
            "last",
            "That is the last difference alone: it may be an epoch's end.",
            lambda alive: alive[-1] - alive[-2],
        ),
        Mistake(
            "two-ends",
            "Close, but it depends on whether the two ends are short batches.",
            lambda alive: (alive[-1] - alive[100]) / 99,
        ),
        Mistake("sign", "From the end to the start: the sign is wrong.", lambda alive: -median(_differences(alive))),
    )
    rounds = 25  # range and total differ only where the last batch is a short one, and much shorter
    relative, absolute = 0.03, 5.0

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return bytes alive: a base, a warm-up, an epoch's shorter last batch, and what is lost."""
        lost = 0 if dice.random() < 0.15 else dice.randrange(500, 60_000)
        # 10, 20 and 25 divide 200: then the last batch is a short one, and that is what tells the mistakes apart.
        epoch = dice.choice((10, 20, 25)) if dice.random() < 0.7 else dice.randrange(9, 30)
        base, state = dice.randrange(10**6, 10**7), dice.randrange(10**6, 10**7)
        less = dice.randrange(10**4, 10**6)
        short = [(t + 1) % epoch == 0 for t in range(200)]
        self._lost = lost
        return ([base + state * min(t, 3) // 3 - less * short[t] + lost * t for t in range(200)],)

    def right(self, alive: list[int]) -> Any:
        """Return what the bytes were made with."""
        return self._lost

    def told(self, *arguments: Any) -> str:
        """Show the first bytes."""
        return "bytes that begin " + ", ".join(f"{alive:,}" for alive in arguments[0][:4]) + " ..."

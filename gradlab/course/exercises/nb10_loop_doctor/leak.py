"""The exercise ``leak``."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    """Return bytes alive: a base, a warm-up, an epoch's shorter last batch, and what is lost."""
    lost = 0 if rng.random() < 0.15 else rng.randrange(500, 60_000)
    # 10, 20 and 25 divide 200: then the last batch is a short one, and that is what tells the mistakes apart.
    epoch = rng.choice((10, 20, 25)) if rng.random() < 0.7 else rng.randrange(9, 30)
    base, state, less = rng.randrange(10**6, 10**7), rng.randrange(10**6, 10**7), rng.randrange(10**4, 10**6)
    alive = [base + state * min(t, 3) // 3 - less * ((t + 1) % epoch == 0) + lost * t for t in range(200)]
    begin = ", ".join(f"{size:,}" for size in alive[:4])
    return Case(alive, text=f"bytes that begin {begin} ...", expect=lost)


def differences(alive: Sequence[int]) -> list[int]:
    return [later - before for before, later in pairwise(alive)]


DEFINITION = Definition(
    case=case,
    mistakes={
        "warm-up": lambda alive: (alive[-1] - alive[0]) / 199,
        "total": lambda alive: alive[-1] - alive[0],
        "range": lambda alive: max(alive) - min(alive),
        "largest": lambda alive: max(differences(alive)),
        "last": lambda alive: alive[-1] - alive[-2],
        "two-ends": lambda alive: (alive[-1] - alive[100]) / 99,
        "sign": lambda alive: -median(differences(alive)),
    },
    rounds=25,  # range and total differ only where the last batch is a short one, and much shorter
    relative=0.03,
    absolute=5.0,
)

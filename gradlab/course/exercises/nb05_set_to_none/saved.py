"""The exercise ``saved``."""

from __future__ import annotations

import random
from itertools import accumulate

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    """Return the bytes of a few layers, activations and gradients, the peak before, after or in backward."""
    count, kind = rng.randint(4, 7), rng.choice(("before", "after", "between", "mixed", "mixed"))
    if kind == "between":  # the last layers take more than they give back, the first ones less
        low, high = (sorted(rng.randint(*ends) for _ in range(count)) for ends in ((1, 60), (60, 100)))
        last = rng.randint(1, count - 1)
        a, g = high[last:] + low[:last], low[last:] + high[:last]
    else:
        ends = {"before": (80, 100, 1, 70), "after": (1, 30, 40, 100), "mixed": (1, 100, 1, 100)}[kind]
        a, g = ([rng.randint(*pair) for _ in range(count)] for pair in (ends[:2], ends[2:]))
    return Case(a, g, text=f"saved({a}, {g})")


def alive(a: list[int], g: list[int]) -> list[int]:
    """Return the bytes alive after 0, 1, 2, ... layers of backward, the last layer first, with None."""
    trades = [gradient - activation for activation, gradient in zip(a, g, strict=True)]
    return list(accumulate(reversed(trades), initial=sum(a)))


def reference(a: list[int], g: list[int]) -> int:
    return sum(a) + sum(g) - max(alive(a, g))


DEFINITION = Definition(
    case=case,
    reference=reference,
    mistakes={
        "all-gradients": lambda a, g: sum(g),
        "nothing": lambda a, g: 0,
        "two-ends": lambda a, g: sum(a) + sum(g) - max(sum(a), sum(g)),
        "other-way": lambda a, g: reference(a[::-1], g[::-1]),
        "peak-with-none": lambda a, g: max(alive(a, g)),
        "peak-with-zeros": lambda a, g: sum(a) + sum(g),
        "not-before": lambda a, g: sum(a) + sum(g) - max(alive(a, g)[1:]),
        "not-after": lambda a, g: sum(a) + sum(g) - max(alive(a, g)[:-1]),
        "each-by-itself": lambda a, g: sum(map(min, a, g)),
        "difference-of-sums": lambda a, g: sum(a) - sum(g),
    },
    rounds=32,
)

"""Answers to the exercise ``leak``: right ones, and one for each typical mistake."""

from collections import Counter
from itertools import pairwise
from statistics import median


def steps(alive):
    return [later - before for before, later in pairwise(alive)]


RIGHT = (lambda alive: median(steps(alive)), lambda alive: Counter(steps(alive)).most_common(1)[0][0])
WRONG = {
    "warm-up": lambda alive: sum(steps(alive)) / len(steps(alive)),
    "total": lambda alive: sum(steps(alive)),
    "range": lambda alive: max(alive) - min(alive),
    "largest": lambda alive: max(steps(alive)),
    "last": lambda alive: steps(alive)[-1],
    "two-ends": lambda alive: sum(steps(alive)[100:]) / 99,
    "sign": lambda alive: median(before - later for before, later in pairwise(alive)),
}

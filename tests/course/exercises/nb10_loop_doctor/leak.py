"""Right answers to the exercise ``leak``."""

from collections import Counter
from itertools import pairwise
from statistics import median


def steps(alive):
    return [later - before for before, later in pairwise(alive)]


RIGHT = (lambda alive: median(steps(alive)), lambda alive: Counter(steps(alive)).most_common(1)[0][0])

"""A right answer to the exercise ``period_of``."""

from itertools import pairwise


def peaks(losses):
    return [t for t in range(1, len(losses) - 1) if losses[t] > losses[t - 1] and losses[t] >= losses[t + 1]]


def mean_gap(losses):
    found = peaks(losses)
    gaps = [later - earlier for earlier, later in pairwise(found)]
    return sum(gaps) / len(gaps)


RIGHT = (mean_gap,)

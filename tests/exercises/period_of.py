"""Answers to the exercise ``period_of``: the right one, and one for each typical mistake."""

from itertools import pairwise


def peaks(losses):
    return [t for t in range(1, len(losses) - 1) if losses[t] > losses[t - 1] and losses[t] >= losses[t + 1]]


def mean_gap(losses):
    found = peaks(losses)
    gaps = [later - earlier for earlier, later in pairwise(found)]
    return sum(gaps) / len(gaps)


def with_valleys(losses):
    found = peaks(losses)
    return (found[-1] - found[0]) / (2 * (len(found) - 1))


RIGHT = (mean_gap,)
WRONG = {
    "weight-period": lambda losses: 2 * mean_gap(losses),
    "valleys": with_valleys,
    "count": lambda losses: len(peaks(losses)),
    "two-peaks": lambda losses: peaks(losses)[1] - peaks(losses)[0],
    "first-peak": lambda losses: next(iter(peaks(losses))),
}

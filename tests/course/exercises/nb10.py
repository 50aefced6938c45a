"""Right answers to the exercises of notebook 10, written another way than the solutions."""

from collections import Counter
from itertools import pairwise


def as_they_come(history):
    held, used, number = 0, 0, 0  # gradients in .grad, and how many of them a step has used
    for call in history:
        if call == "zero":
            held = used = 0
        elif call == "backward":
            held += 1
        else:
            number += 1
            if used:
                yield number
            used = held


def most_common(alive):
    return Counter(later - before for before, later in pairwise(alive)).most_common(1)[0][0]


RIGHT = {"stale_steps": [as_they_come], "leak": [most_common]}

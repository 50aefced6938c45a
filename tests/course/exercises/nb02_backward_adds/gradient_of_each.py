"""Right answers to the exercise ``gradient_of_each``."""

from itertools import pairwise

import torch


def by_difference(w, losses):
    found = []
    for loss in losses:
        before = torch.zeros_like(w) if w.grad is None else w.grad.clone()
        loss.backward()
        found.append(w.grad - before)
    return found


def sums_first(w, losses):
    sums = [torch.zeros_like(w)]
    for loss in losses:
        loss.backward()
        sums.append(w.grad.clone())
    return [after - before for before, after in pairwise(sums)]


RIGHT = (by_difference, sums_first)

"""Right answers to the exercises of notebook 02, written another way than the solutions."""

from itertools import pairwise

import torch


def sums_first(w, losses):
    sums = [torch.zeros_like(w)]
    for loss in losses:
        loss.backward()
        sums.append(w.grad.clone())
    return [after - before for before, after in pairwise(sums)]


def forwards(w, xs, goal):
    h = slope = 0.0
    for x in xs:
        slope = h + w * slope
        h = w * h + x
    return 2 * (h - goal) * slope


def step_by_step(w, xs, ys, size):
    h, loss = torch.zeros(()), 0.0
    for t in range(len(xs)):
        if t and t % size == 0:
            loss.backward()
            h, loss = h.detach(), 0.0
        h = torch.tanh(w * h + xs[t])
        loss = loss + (h - ys[t]) ** 2
    loss.backward()
    return w.grad.clone()


RIGHT = {"gradient_of_each": [sums_first], "memory_gradient": [forwards], "truncated": [step_by_step]}

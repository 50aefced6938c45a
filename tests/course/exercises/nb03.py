"""Right answers to the exercises of notebook 03, written another way than the solutions."""

import math
from itertools import pairwise

import torch


def after_step(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        loss_fn(model(x), y).backward()
        optimizer.step()
        model.zero_grad()


def by_the_half_angle(lr, loss_period):
    return 4 * math.sin(math.pi / loss_period / 2) ** 2 / lr


def mean_gap(losses):
    found = [t for t in range(1, len(losses) - 1) if losses[t] > losses[t - 1] and losses[t] >= losses[t + 1]]
    gaps = [later - earlier for earlier, later in pairwise(found)]
    return sum(gaps) / len(gaps)


RIGHT = {"mended": [after_step], "curvature_from": [by_the_half_angle], "period_of": [mean_gap]}

"""Right answers to the exercises of notebook 10, written another way than the solutions."""

from collections import Counter
from itertools import pairwise

import torch
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR


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


def detached(body, head, loss_fn, batches, lr):
    model, total = nn.Sequential(body, head), 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scheduler = ExponentialLR(optimizer, gamma=0.99)
    for x, y in batches:
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        total += loss.detach()
    return total / len(batches)


def most_common(alive):
    return Counter(later - before for before, later in pairwise(alive)).most_common(1)[0][0]


RIGHT = {"stale_steps": [as_they_come], "mended_head": [detached], "leak": [most_common]}

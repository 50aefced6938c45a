"""Right answers to the exercises of notebook 00, written another way than the solutions."""

import torch


def by_counting(updates, accumulate, zero_grad):
    held = 0
    for _ in range(updates):
        held = 0 if zero_grad else held
        held += accumulate
    return held


def clearing_last(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        loss_fn(model(x), y).backward()
        optimizer.step()
        model.zero_grad()


RIGHT = {"batches_in_grad": [by_counting], "train_one_epoch": [clearing_last]}

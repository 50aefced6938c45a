"""Right answers to the exercises of notebook 07, written another way than the solutions."""

from itertools import islice

import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_


def losses(model, window, reduction):
    for x, y in window:
        yield cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-100, reduction=reduction)


def weighted(model, window):
    counts = [(y != -100).sum() for _, y in window]
    for loss, count in zip(losses(model, window, "mean"), counts, strict=True):
        (loss * count / sum(counts)).backward()


def divided_afterwards(model, window):
    total = 0
    for (_, y), loss in zip(window, losses(model, window, "sum"), strict=True):
        loss.backward()
        total += (y != -100).sum().item()
    for p in model.parameters():
        p.grad /= total


def by_stream(model, loss_fn, batches, lr, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    stream = iter(batches)
    while window := list(islice(stream, n)):
        for x, y in window:
            (loss_fn(model(x), y) / len(window)).backward()
        optimizer.step()
        optimizer.zero_grad()


def by_counter(model, loss_fn, batches, lr, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    whole = len(batches) // n * n
    for i, (x, y) in enumerate(batches):
        size = n if i < whole else len(batches) - whole
        (loss_fn(model(x), y) / size).backward()
        if (i + 1) % n == 0 or i + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()


def as_a_tensor(model, loss_fn, window, optimizer, max_norm):
    model.zero_grad()
    mean = torch.stack([loss_fn(model(x), y) for x, y in window]).mean()
    mean.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return mean.detach()


RIGHT = {
    "by_tokens": [weighted, divided_afterwards],
    "accumulated": [by_stream, by_counter],
    "one_update": [as_a_tensor],
}

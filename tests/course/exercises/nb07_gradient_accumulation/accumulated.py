"""Right answers to the exercise ``accumulated``."""

from itertools import islice

import torch


def by_slices(model, loss_fn, batches, lr, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for start in range(0, len(batches), n):
        window = batches[start : start + n]
        optimizer.zero_grad()
        for x, y in window:
            (loss_fn(model(x), y) / len(window)).backward()
        optimizer.step()


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


RIGHT = (by_slices, by_stream, by_counter)

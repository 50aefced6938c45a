"""Answers to the exercise ``accumulated``: right ones, and one for each typical mistake."""

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


def printed(model, loss_fn, batches, lr, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for i, (x, y) in enumerate(batches):
        (loss_fn(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()


def by_n(model, loss_fn, batches, lr, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for i, (x, y) in enumerate(batches):
        (loss_fn(model(x), y) / n).backward()
        if (i + 1) % n == 0 or i + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()


def undivided(model, loss_fn, batches, lr, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for i, (x, y) in enumerate(batches):
        loss_fn(model(x), y).backward()
        if (i + 1) % n == 0 or i + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()


def forgot(model, loss_fn, batches, lr, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for start in range(0, len(batches), n):
        window = batches[start : start + n]
        for x, y in window:
            (loss_fn(model(x), y) / len(window)).backward()
        optimizer.step()


def clears_each(model, loss_fn, batches, lr, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for start in range(0, len(batches), n):
        window = batches[start : start + n]
        for x, y in window:
            optimizer.zero_grad()
            (loss_fn(model(x), y) / len(window)).backward()
        optimizer.step()


def plain(model, loss_fn, batches, lr, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


def whole_epoch(model, loss_fn, batches, lr, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        (loss_fn(model(x), y) / len(batches)).backward()
    optimizer.step()


def never_steps(model, loss_fn, batches, lr, n):
    for x, y in batches:
        (loss_fn(model(x), y) / n).backward()


RIGHT = (by_slices, by_stream, by_counter)
WRONG = {
    "drops-last": printed,
    "full-size": by_n,
    "sum": undivided,
    "never-clears": forgot,
    "clears-inside": clears_each,
    "step-each-batch": plain,
    "one-step": whole_epoch,
    "does-not-move": never_steps,
}

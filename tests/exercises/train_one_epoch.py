"""Answers to the exercise ``train_one_epoch``: right ones, and one for each typical mistake."""

import torch


def as_usual(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()


def clearing_last(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        loss_fn(model(x), y).backward()
        optimizer.step()
        model.zero_grad()


def by_hand(model, loss_fn, batches, lr):
    for x, y in batches:
        model.zero_grad()
        loss_fn(model(x), y).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= lr * p.grad


def cleared_too_early(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        loss_fn(model(x), y).backward()
        optimizer.zero_grad()
        optimizer.step()


def no_brackets(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        optimizer.zero_grad  # noqa: B018
        loss_fn(model(x), y).backward()
        optimizer.step()


def step_outside(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    optimizer.zero_grad()
    for x, y in batches:
        loss_fn(model(x), y).backward()
    optimizer.step()


def step_outside_cleared_inside(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
    optimizer.step()


def too_soon(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        optimizer.step()
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()


def with_adam(model, loss_fn, batches, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for x, y in batches:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


RIGHT = (as_usual, clearing_last, by_hand)
WRONG = {
    "does-not-move": cleared_too_early,
    "never-clears": no_brackets,
    "one-step": step_outside,
    "only-the-last": step_outside_cleared_inside,
    "step-first": too_soon,
    "adam": with_adam,
}

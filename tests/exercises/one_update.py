"""Answers to the exercise ``one_update``: right ones, and one for each typical mistake."""

import torch
from torch.nn.utils import clip_grad_norm_


def in_order(model, loss_fn, window, optimizer, max_norm):
    optimizer.zero_grad()
    total = 0.0
    for x, y in window:
        loss = loss_fn(model(x), y) / len(window)
        loss.backward()
        total += loss.item()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return total


def as_a_tensor(model, loss_fn, window, optimizer, max_norm):
    model.zero_grad()
    losses = [loss_fn(model(x), y) for x, y in window]
    mean = torch.stack(losses).mean()
    mean.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return mean.detach()


def inside(model, loss_fn, window, optimizer, max_norm):
    optimizer.zero_grad()
    total = 0.0
    for x, y in window:
        loss = loss_fn(model(x), y) / len(window)
        loss.backward()
        clip_grad_norm_(model.parameters(), max_norm)
        total += loss.item()
    optimizer.step()
    return total


def too_late(model, loss_fn, window, optimizer, max_norm):
    optimizer.zero_grad()
    total = 0.0
    for x, y in window:
        loss = loss_fn(model(x), y) / len(window)
        loss.backward()
        total += loss.item()
    optimizer.step()
    clip_grad_norm_(model.parameters(), max_norm)
    return total


def undivided(model, loss_fn, window, optimizer, max_norm):
    optimizer.zero_grad()
    total = 0.0
    for x, y in window:
        loss = loss_fn(model(x), y)
        loss.backward()
        total += loss.item()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return total / len(window)


def not_cleared(model, loss_fn, window, optimizer, max_norm):
    total = 0.0
    for x, y in window:
        loss = loss_fn(model(x), y) / len(window)
        loss.backward()
        total += loss.item()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return total


def returning(what):
    def update(model, loss_fn, window, optimizer, max_norm):
        in_order_losses = [loss_fn(model(x), y).item() for x, y in window]
        in_order(model, loss_fn, window, optimizer, max_norm)
        return what(in_order_losses)

    return update


RIGHT = (in_order, as_a_tensor)
WRONG = {
    "clips-inside": inside,
    "clips-nothing": too_late,
    "clips-the-sum": undivided,
    "does-not-clear": not_cleared,
    "returns-a-share": returning(lambda losses: losses[-1] / len(losses)),
    "returns-the-last": returning(lambda losses: losses[-1]),
    "returns-the-sum": returning(sum),
}

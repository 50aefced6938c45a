"""Answers to the exercise ``mended``: right ones, and one for each typical mistake."""

import torch


def before_forward(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


def after_step(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        loss_fn(model(x), y).backward()
        optimizer.step()
        model.zero_grad()


def never(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    optimizer.zero_grad()
    for x, y in batches:
        loss_fn(model(x), y).backward()
        optimizer.step()


def between(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        loss_fn(model(x), y).backward()
        optimizer.zero_grad()
        optimizer.step()


def early(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        optimizer.step()
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()


def outside(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        loss_fn(model(x), y).backward()
    optimizer.step()


RIGHT = (before_forward, after_step)
WRONG = {"never-clears": never, "does-not-move": between, "step-first": early, "one-step": outside}

"""Right answers to the exercise ``mended``."""

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


RIGHT = (before_forward, after_step)

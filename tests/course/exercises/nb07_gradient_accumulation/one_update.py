"""Right answers to the exercise ``one_update``."""

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


RIGHT = (in_order, as_a_tensor)

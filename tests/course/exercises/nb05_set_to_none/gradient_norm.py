"""Right answers to the exercise ``gradient_norm``."""

import math

import torch


def by_squares(model):
    total = 0.0
    for p in model.parameters():
        if p.grad is not None:
            total += (p.grad**2).sum().item()
    return math.sqrt(total)


def by_torch(model):
    return torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1e9)


RIGHT = (by_squares, by_torch)

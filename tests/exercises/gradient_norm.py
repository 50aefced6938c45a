"""Answers to the exercise ``gradient_norm``: right ones, and one for each typical mistake."""

import math

import torch


def norms(model):
    return [p.grad.norm() for p in model.parameters() if p.grad is not None]


def by_squares(model):
    total = 0.0
    for p in model.parameters():
        if p.grad is not None:
            total += (p.grad**2).sum().item()
    return math.sqrt(total)


def by_torch(model):
    return torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1e9)


def single_numbers(model):
    return max([p.grad.abs().max() for p in model.parameters() if p.grad is not None], default=0)


def of_weights(model):
    return torch.nn.utils.parameters_to_vector(model.parameters()).norm()


def by_mean(model):
    return torch.stack(norms(model)).norm() if norms(model) else torch.tensor([]).mean()


RIGHT = (by_squares, by_torch)
WRONG = {
    "sum-of-norms": lambda model: sum(norms(model)),
    "no-root": lambda model: sum(norm**2 for norm in norms(model)),
    "largest": lambda model: max(norms(model), default=0),
    "mean-of-norms": lambda model: sum(norms(model)) / len(norms(model)) if norms(model) else 0,
    "largest-number": single_numbers,
    "weights": of_weights,
    "nothing-is-not-a-number": by_mean,
}

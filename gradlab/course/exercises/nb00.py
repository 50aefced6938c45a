"""The exercises of notebook 00."""

from __future__ import annotations

import random

import torch

from .checking import Case, Definition
from .loops import linear_regression, one_step, sgd, stand_still, trained, trained_by_hand


def batches_in_grad_case(rng: random.Random) -> Case:
    updates, accumulate, zero_grad = rng.randint(2, 9), rng.randint(2, 6), rng.random() < 0.5
    text = f"updates={updates}, accumulate={accumulate}, zero_grad={zero_grad}"
    return Case(updates, accumulate, zero_grad, text=text)


def batches_in_grad_reference(updates: int, accumulate: int, zero_grad: bool) -> int:
    """Let PyTorch count: each backward() adds exactly 1."""
    w = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(updates):
        if zero_grad:
            optimizer.zero_grad()
        for _ in range(accumulate):
            w.sum().backward()
        optimizer.step()
    return 0 if w.grad is None else int(w.grad.item())


batches_in_grad = Definition(
    case=batches_in_grad_case,
    reference=batches_in_grad_reference,
    mistakes={
        "empty": lambda updates, accumulate, zero_grad: 0,
        "emptied-after": lambda updates, accumulate, zero_grad: 0 if zero_grad else updates * accumulate,
        "always-a-window": lambda updates, accumulate, zero_grad: accumulate,
        "never-cleared": lambda updates, accumulate, zero_grad: updates * accumulate,
    },
    plot_values=lambda value: None,
    rounds=20,  # so that both settings of zero_grad come up
)


def train_one_epoch_case(rng: random.Random) -> Case:
    _, _, batches, lr = arguments = linear_regression(rng, rng.randint(4, 7))
    return Case(*arguments, text=f"{len(batches)} batches and lr={lr:.3f}: these are the weights afterwards")


train_one_epoch = Definition(
    case=train_one_epoch_case,
    reference=trained_by_hand,
    observe=trained,
    mistakes={"does-not-move": stand_still, "never-clears": sgd(clear="never"), "one-step": one_step},
    rounds=4,
    axes=("weight", "its value afterwards"),
)

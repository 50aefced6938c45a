"""The exercise ``batches_in_grad``."""

from __future__ import annotations

import random

import torch

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    updates, accumulate, zero_grad = rng.randint(2, 9), rng.randint(2, 6), rng.random() < 0.5
    text = f"updates={updates}, accumulate={accumulate}, zero_grad={zero_grad}"
    return Case(updates, accumulate, zero_grad, text=text)


def reference(updates: int, accumulate: int, zero_grad: bool) -> int:
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


DEFINITION = Definition(
    case=case,
    reference=reference,
    mistakes={
        "empty": lambda updates, accumulate, zero_grad: 0,
        "emptied-after": lambda updates, accumulate, zero_grad: 0 if zero_grad else updates * accumulate,
        "always-a-window": lambda updates, accumulate, zero_grad: accumulate,
        "never-cleared": lambda updates, accumulate, zero_grad: updates * accumulate,
        "without-the-newest": lambda updates, accumulate, zero_grad: 0 if zero_grad else (updates - 1) * accumulate,
        "updates": lambda updates, accumulate, zero_grad: 1 if zero_grad else updates,
        "the-other-way": lambda updates, accumulate, zero_grad: updates * accumulate if zero_grad else accumulate,
    },
    plot_values=lambda value: None,
    rounds=20,  # so that both settings of zero_grad come up
)

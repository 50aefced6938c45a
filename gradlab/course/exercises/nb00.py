"""The exercises of notebook 00."""

from __future__ import annotations

import random

import torch
from torch import nn

from .checking import Case, Definition
from .loops import sgd, trained


def batches_in_grad_case(rng: random.Random) -> Case:
    updates, accumulate, zero_grad = rng.randint(2, 9), rng.randint(2, 6), rng.random() < 0.5
    text = f"updates={updates}, accumulate={accumulate}, zero_grad={zero_grad}"
    return (updates, accumulate, zero_grad), text


batches_in_grad = Definition(
    case=batches_in_grad_case,
    mistakes={
        "empty": lambda updates, accumulate, zero_grad: 0,
        "emptied-after": lambda updates, accumulate, zero_grad: 0 if zero_grad else updates * accumulate,
        "always-a-window": lambda updates, accumulate, zero_grad: accumulate,
        "never-cleared": lambda updates, accumulate, zero_grad: updates * accumulate,
    },
    rounds=20,  # so that both settings of zero_grad come up
)


def train_one_epoch_case(rng: random.Random) -> Case:
    batches = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(rng.randint(4, 7))]
    model, lr = nn.Linear(3, 1), rng.uniform(0.05, 0.2)
    text = f"{len(batches)} batches and lr={lr:.3f}: these are the weights afterwards"
    return (model, nn.functional.mse_loss, batches, lr), text


train_one_epoch = Definition(
    case=train_one_epoch_case,
    observe=trained,
    mistakes={
        "does-not-move": lambda *arguments: None,
        "never-clears": sgd(clear="never"),
        "one-step": lambda *arguments: sgd(divide_by=1)(*arguments, n=len(arguments[2])),
    },
    rounds=4,
)

"""The exercise ``mended``."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import Tensor, nn

from ..definition import Case, Definition
from ..loops import all_weights, sgd, sgd_step_by_hand, trained


def case(rng: random.Random) -> Case:
    batches = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(6)]
    model, lr = nn.Linear(3, 1), rng.uniform(0.05, 0.2)
    text = f"six batches and lr={lr:.3f}: these are the weights afterwards"
    return Case(model, nn.functional.mse_loss, batches, lr, text=text)


def reference(model: nn.Module, loss_fn: Any, batches: Any, lr: float) -> Tensor:
    for x, y in batches:
        sgd_step_by_hand(loss_fn(model(x), y), model.parameters(), lr)
    return all_weights(model)


DEFINITION = Definition(
    case=case,
    reference=reference,
    observe=trained,
    mistakes={
        "never-clears": sgd(clear=False),
        "does-not-move": lambda *arguments: None,
        "step-first": sgd(skip=1),
        "one-step": sgd(clear=False, step="epoch"),
    },
    rounds=3,
    axes=("weight", "its value afterwards"),
)

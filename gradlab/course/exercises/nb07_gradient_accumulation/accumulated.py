"""The exercise ``accumulated``."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..definition import Case, Definition
from ..loops import all_weights, sgd_step_by_hand, trained
from .shared import joined


def case(rng: random.Random) -> Case:
    """Return batches of one size that fill two windows and part of a third."""
    n = rng.randint(3, 5)
    batches = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(2 * n + rng.randint(2, n - 1))]
    text = f"{len(batches)} batches, n={n}: these are the weights afterwards"
    return Case(nn.Linear(3, 1), nn.functional.mse_loss, batches, rng.uniform(0.05, 0.15), n, text=text)


def reference(model: nn.Module, loss_fn: Any, batches: Any, lr: float, n: int) -> Tensor:
    """Take each window as one large batch."""
    for start in range(0, len(batches), n):
        x, y = joined(batches[start : start + n])
        sgd_step_by_hand(loss_fn(model(x), y), model.parameters(), lr)
    return all_weights(model)


def loop(divide_by: Callable[[int, int], int] = lambda own, n: own, clear: str = "window") -> Callable[..., None]:
    """Return a loop: right, or with another division (given the window's own size and n) or place to clear."""

    def run(model: nn.Module, loss_fn: Any, batches: Any, lr: float, n: int) -> None:
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        for start in range(0, len(batches), n):
            window = batches[start : start + n]
            for i, (x, y) in enumerate(window):
                if clear == "batch" or (clear == "window" and i == 0):
                    optimizer.zero_grad()
                (loss_fn(model(x), y) / divide_by(len(window), n)).backward()
            optimizer.step()

    return run


DEFINITION = Definition(
    case=case,
    reference=reference,
    observe=trained,
    mistakes={
        "drops-last": lambda model, loss_fn, batches, lr, n: loop()(model, loss_fn, batches[: 2 * n], lr, n),
        "full-size": loop(lambda own, n: n),
        "sum": loop(lambda own, n: 1),
        "never-clears": loop(clear="never"),
        "clears-inside": loop(clear="batch"),
        "step-each-batch": lambda model, loss_fn, batches, lr, n: loop()(model, loss_fn, batches, lr, 1),
        "one-step": lambda model, loss_fn, batches, lr, n: loop()(model, loss_fn, batches, lr, len(batches)),
        "does-not-move": lambda *arguments: None,
    },
    rounds=5,
    axes=("weight", "its value afterwards"),
)

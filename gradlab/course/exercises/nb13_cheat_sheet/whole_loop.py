"""The exercise ``whole_loop``."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..definition import Case, Definition
from ..loops import all_weights, sgd_step_by_hand, trained


def case(rng: random.Random) -> Case:
    """Return seven batches, of which the last ones need no clipping."""
    batches = [(torch.randn(6, 3), (10 if i < 3 else 0.3) * torch.randn(6, 1)) for i in range(7)]
    window, model, lr, max_norm = rng.choice((2, 3, 4, 5)), nn.Linear(3, 1), rng.uniform(0.05, 0.2), rng.uniform(2, 3)
    text = f"7 batches, window={window}, lr={lr:.2f}, max_norm={max_norm:.1f}: the weights afterwards"
    return Case(model, nn.functional.mse_loss, batches, lr, window, max_norm, text=text)


def reference(model: nn.Module, loss_fn: Any, batches: Any, lr: float, window: int, max_norm: float) -> Tensor:
    """Make each update by hand, on the mean loss of its window."""
    for start in range(0, len(batches), window):
        loss = torch.stack([loss_fn(model(x), y) for x, y in batches[start : start + window]]).mean()
        sgd_step_by_hand(loss, model.parameters(), lr, max_norm)
    return all_weights(model)


def loop(*, clear: bool = True, divide: str = "own", clip: str = "window", last: bool = True) -> Callable[..., None]:
    """Return the loop that is asked for, or one with a part of it wrong."""

    def run(model: nn.Module, loss_fn: Any, batches: Any, lr: float, window: int, max_norm: float) -> None:
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        for start in range(0, len(batches) if last else len(batches) // window * window, window):
            part = batches[start : start + window]
            if clear:
                optimizer.zero_grad()
            for x, y in part:
                (loss_fn(model(x), y) / {"own": len(part), "window": window, "no": 1}[divide]).backward()
                if clip == "batch":
                    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            if clip == "window":
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()

    return run


DEFINITION = Definition(
    case=case,
    reference=reference,
    observe=trained,
    mistakes={
        "never-clears": loop(clear=False),
        "not-divided": loop(divide="no"),
        "divided-by-window": loop(divide="window"),
        "last-window-dropped": loop(last=False),
        "clips-each-batch": loop(clip="batch"),
        "never-clips": loop(clip="no"),
    },
    rounds=4,
    axes=("weight", "its value afterwards"),
)

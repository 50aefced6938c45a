"""The exercise ``one_update``."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.functional import mse_loss

from ..definition import Case, Definition
from ..loops import all_weights, gradient, sgd_step_by_hand
from .shared import joined


def case(rng: random.Random) -> Case:
    """Return a model with something in .grad, and a threshold below or above the norm of the window's gradient."""
    model = nn.Linear(4, 2)
    window = [(torch.randn(3, 4), 3 * torch.randn(3, 2)) for _ in range(rng.randint(3, 5))]
    x, y = joined(window)
    norm = gradient(mse_loss(model(x), y), model).norm().item()
    max_norm = norm * (rng.uniform(0.3, 0.6) if rng.random() < 0.5 else rng.uniform(1.2, 2.0))
    mse_loss(model(torch.randn(3, 4)), torch.randn(3, 2)).backward()
    optimizer = torch.optim.SGD(model.parameters(), lr=rng.uniform(0.05, 0.15))
    text = f"a window of {len(window)} and max_norm={max_norm:.3f}"
    return Case(model, mse_loss, window, optimizer, max_norm, text=text)


def reference(model: nn.Module, loss_fn: Any, window: Any, optimizer: Any, max_norm: float) -> dict[str, object]:
    """Take the window as one large batch."""
    x, y = joined(window)
    loss = loss_fn(model(x), y)
    sgd_step_by_hand(loss, model.parameters(), optimizer.param_groups[0]["lr"], max_norm)
    return {"weights": all_weights(model), "loss": loss.item()}


def observe(answer: Callable[..., object], model: nn.Module, *arguments: object) -> dict[str, object]:
    loss = answer(model, *arguments)
    return {"weights": all_weights(model), "loss": loss}


def update(
    clear: bool = True,
    divide: bool = True,
    clip: str = "window",
    result: Callable[[list[float]], float] = lambda losses: sum(losses) / len(losses),
) -> Callable[..., float]:
    def run(model: nn.Module, loss_fn: Any, window: Any, optimizer: torch.optim.Optimizer, max_norm: float) -> float:
        if clear:
            optimizer.zero_grad()
        losses = []
        for i, (x, y) in enumerate(window, 1):
            loss = loss_fn(model(x), y)
            (loss / len(window) if divide else loss).backward()
            losses.append(loss.item())
            if clip == "batch" or (clip == "window" and i == len(window)):
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        return result(losses)

    return run


DEFINITION = Definition(
    case=case,
    reference=reference,
    observe=observe,
    mistakes={
        "clips-inside": update(clip="batch"),
        "clips-nothing": update(clip="never"),
        "clips-the-sum": update(divide=False),
        "does-not-clear": update(clear=False),
        "returns-a-share": update(result=lambda losses: losses[-1] / len(losses)),
        "returns-the-last": update(result=lambda losses: losses[-1]),
        "returns-the-sum": update(result=sum),
    },
    rounds=16,  # the threshold is too high to matter in half of the cases; both kinds have to come up
    plot_values=lambda value: value["weights"],
    axes=("weight", "its value afterwards"),
)

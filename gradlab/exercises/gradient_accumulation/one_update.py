"""The exercise ``one_update``: everything in its place."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.functional import mse_loss

from ..base import Exercise, Mistake
from ..loops import gradient, weights
from .shared import joined


def _update(
    *, clear: bool = True, divide: bool = True, clip: str = "window", say: str = "mean"
) -> Callable[..., float]:
    """Return one update of a window, right or with something missing or in another place."""

    def update(model: nn.Module, loss_fn: Any, window: Any, optimizer: Any, max_norm: float) -> float:
        if clear:
            optimizer.zero_grad()
        losses = []
        for x, y in window:
            loss = loss_fn(model(x), y)
            (loss / len(window) if divide else loss).backward()
            losses.append(loss.item())
            if clip == "batch":
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if clip == "window":
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        mean = sum(losses) / len(losses)
        said = {"mean": mean, "sum": sum(losses), "last": losses[-1], "share": losses[-1] / len(losses)}
        return said[say]

    return update


class OneUpdate(Exercise):
    """One update with everything in its place."""

    name = "one_update"
    notebook = "07_gradient_accumulation"
    title = "Everything in its place"
    level, minutes = "harder", 10
    spec = (
        "Write `one_update(model, loss_fn, window, optimizer, max_norm)`: one update with the gradient of the window's "
        "mean loss, clipped once to `max_norm`, whatever was in `.grad` before; return the mean loss of the window "
        "as a number."
    )
    stub = """
def one_update(model, loss_fn, window, optimizer, max_norm):
    for x, y in window:
        loss = loss_fn(model(x), y)
    return 0.0  # your update
"""
    hints = (
        "Six things: clear, then for each batch forward, backward and note the loss; then clip, step, return.",
        "`torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)` belongs where `.grad` is complete.",
        "Divide what goes backward, `(loss / len(window)).backward()`, and leave `loss` itself alone: its mean is what "
        "you return.",
    )
    mistakes = (
        Mistake(
            "clips-inside",
            "You clip inside the window: the first micro-batches are shortened again and again.",
            _update(clip="batch"),
        ),
        Mistake(
            "clips-nothing",
            "The step has used a gradient that was not clipped: clip after the last backward(), before step().",
            _update(clip="never"),
        ),
        Mistake(
            "clips-the-sum",
            "You clip the sum of the gradients: without the division max_norm bites too early.",
            _update(divide=False),
        ),
        Mistake(
            "does-not-clear",
            "There was something in `.grad` before: clear it before the window begins.",
            _update(clear=False),
        ),
        Mistake(
            "returns-a-share",
            "The weights are right. The loss that you return is a share of it, divided for backward().",
            _update(say="share"),
        ),
        Mistake(
            "returns-the-last",
            "The weights are right. You return the loss of the last micro-batch, not the window's mean.",
            _update(say="last"),
        ),
        Mistake(
            "returns-the-sum",
            "The weights are right. You return the sum of the losses: their mean is wanted.",
            _update(say="sum"),
        ),
    )
    rounds = 16  # the threshold is too high to matter in half of the cases; both kinds have to come up
    axes = ("weight", "its value afterwards")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a model with something in .grad, a loss, a window, SGD, and a threshold below or above the norm."""
        model = nn.Linear(4, 2)
        window = [(torch.randn(3, 4), 3 * torch.randn(3, 2)) for _ in range(dice.randint(3, 5))]
        x, y = joined(window)
        norm = gradient(mse_loss(model(x), y), model).norm().item()
        part = dice.uniform(0.3, 0.6) if dice.random() < 0.5 else dice.uniform(1.2, 2.0)
        mse_loss(model(torch.randn(3, 4)), torch.randn(3, 2)).backward()
        optimizer = torch.optim.SGD(model.parameters(), lr=dice.uniform(0.05, 0.15))
        return model, mse_loss, window, optimizer, norm * part

    def right(self, model: nn.Module, loss_fn: Any, window: Any, optimizer: Any, max_norm: float) -> Any:
        """Take the window as one large batch; shorten its gradient, from autograd.grad, by hand."""
        x, y = joined(window)
        loss = loss_fn(model(x), y)
        whole = gradient(loss, model)
        shorter = whole * min(1.0, max_norm / whole.norm().item())
        return {"weights": weights(model) - optimizer.param_groups[0]["lr"] * shorter, "loss": loss.item()}

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Compare the weights after the update, and the loss that is returned."""
        said = answer(*arguments)
        return {"weights": weights(arguments[0]), "loss": said}

    def told(self, *arguments: Any) -> str:
        """Say how large the window and the threshold are."""
        return f"a window of {len(arguments[2])} and max_norm={arguments[4]:.3f}"

    def drawn(self, value: Any) -> Any:
        """Draw the weights."""
        return value["weights"]

"""The exercise ``train_one_epoch``: the loop from memory."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import nn
from torch.nn.functional import mse_loss

from ..base import Exercise, Mistake
from ..loops import descend, trained, weights


def _epoch(*, clear: str = "before", step: str = "batch", skip: int = 0, kind: Any = torch.optim.SGD) -> Any:
    """Return a training loop, right or with one thing missing or in another place."""

    def loop(model: nn.Module, loss_fn: Any, batches: Any, lr: float) -> None:
        optimizer = kind(model.parameters(), lr=lr)
        for x, y in batches[: len(batches) - skip]:
            if clear == "before":
                optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            if step == "batch":
                optimizer.step()
        if step == "epoch":
            optimizer.step()

    return loop


class TrainOneEpoch(Exercise):
    """The loop, written from memory."""

    name = "train_one_epoch"
    notebook = "00_start_here"
    title = "The loop from memory"
    level, minutes = "medium", 6
    spec = (
        "Write `train_one_epoch(model, loss_fn, batches, lr)`: one epoch of plain SGD, one update for each batch, in "
        "ordinary PyTorch."
    )
    stub = """
def train_one_epoch(model, loss_fn, batches, lr):
    pass  # your loop
"""
    hints = (
        "Five things happen for each batch: clear, forward, loss, backward, step.",
        "The optimizer is made once, before the loop: `torch.optim.SGD(model.parameters(), lr=lr)`.",
        "In the loop: `optimizer.zero_grad()`, `loss = loss_fn(model(x), y)`, `loss.backward()`, `optimizer.step()`.",
    )
    mistakes = (
        Mistake(
            "does-not-move",
            "The weights have not moved: is step() there, and is `.grad` full when it comes?",
            _epoch(step="never"),
        ),
        Mistake(
            "never-clears",
            "You train without clearing `.grad`: call zero_grad(), with its brackets, for each batch.",
            _epoch(clear="never"),
        ),
        Mistake(
            "one-step",
            "That is one step for the whole epoch, with the sum of all gradients: step() belongs inside the loop.",
            _epoch(clear="never", step="epoch"),
        ),
        Mistake(
            "only-the-last",
            "That is one step for the whole epoch, with the last batch alone: step() belongs inside the loop.",
            _epoch(step="epoch"),
        ),
        Mistake("step-first", "One update is missing: is step() before backward()?", _epoch(skip=1)),
        Mistake("adam", "That is Adam. Plain SGD is wanted.", _epoch(kind=torch.optim.Adam)),
    )
    rounds = 4
    axes = ("weight", "its value afterwards")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a small model, a loss, batches and an lr."""
        batches = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(dice.randint(4, 7))]
        return nn.Linear(3, 1), mse_loss, batches, dice.uniform(0.05, 0.2)

    def right(self, model: nn.Module, loss_fn: Any, batches: Any, lr: float) -> Any:
        """Make each update by hand, which never touches .grad."""
        for x, y in batches:
            descend(loss_fn(model(x), y), model.parameters(), lr)
        return weights(model)

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Compare the weights after the epoch."""
        return trained(answer, *arguments)

    def told(self, *arguments: Any) -> str:
        """Say what the weights belong to."""
        return f"{len(arguments[2])} batches and lr={arguments[3]:.3f}: these are the weights afterwards"

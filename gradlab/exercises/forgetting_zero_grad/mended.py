"""The exercise ``mended``: mend the loop."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import nn

from ..base import Exercise, Mistake
from ..loops import descend, trained, weights


def _sgd(model: nn.Module, loss_fn: Any, batches: Any, lr: float, *, clear: bool = True, each: bool = True) -> None:
    """Run the loop that is asked for, or without its clearing, or with one step at its end."""
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        if clear:
            optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        if each:
            optimizer.step()
    if not each:
        optimizer.step()


def _still(model: nn.Module, loss_fn: Any, batches: Any, lr: float) -> None:
    """Leave the weights where they are, as clearing between backward and step does."""


def _late(model: nn.Module, loss_fn: Any, batches: Any, lr: float) -> None:
    """Step before backward: the last batch is never used."""
    _sgd(model, loss_fn, batches[:-1], lr)


class Mended(Exercise):
    """A loop that calls nothing."""

    name = "mended"
    notebook = "03_forgetting_zero_grad"
    title = "Mend the loop"
    level, minutes = "easy", 4
    spec = "This loop trains, and the loss swings: mend it, so that each update uses its own batch only."
    stub = """
def mended(model, loss_fn, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        optimizer.zero_grad
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
"""
    hints = (
        "Read the five lines of the loop aloud. Which of them does nothing at all?",
        "A function is called by its brackets. Without them a line names it, and that is all.",
    )
    mistakes = (
        Mistake(
            "never-clears",
            "`.grad` is still never cleared inside the loop.",
            lambda *all: _sgd(*all, clear=False),
        ),
        Mistake(
            "does-not-move",
            "The weights do not move: you clear between backward() and step(), or step() is gone.",
            _still,
        ),
        Mistake("step-first", "One update is missing: is step() before backward()?", _late),
        Mistake(
            "one-step",
            "One step for the whole epoch: step() belongs inside the loop.",
            lambda *all: _sgd(*all, clear=False, each=False),
        ),
    )
    rounds = 3
    axes = ("weight", "its value afterwards")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a small model, a loss, six batches and an lr."""
        batches = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(6)]
        return nn.Linear(3, 1), nn.functional.mse_loss, batches, dice.uniform(0.05, 0.2)

    def right(self, model: nn.Module, loss_fn: Any, batches: Any, lr: float) -> Any:
        """Make each update by hand, which never touches .grad."""
        for x, y in batches:
            descend(loss_fn(model(x), y), model.parameters(), lr)
        return weights(model)

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Compare the weights after the loop."""
        return trained(answer, *arguments)

    def told(self, *arguments: Any) -> str:
        """Say what the weights belong to."""
        return f"six batches and lr={arguments[-1]:.3f}: these are the weights afterwards"

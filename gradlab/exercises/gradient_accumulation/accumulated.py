"""The exercise ``accumulated``: the loop, with its last window."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.functional import mse_loss

from ..base import Exercise, Mistake
from ..loops import descend, trained, weights
from .shared import joined


def _windows(
    size: Callable[[int, int], int] = lambda own, full: own, *, clear: str = "window", keep: bool = True
) -> Callable[..., None]:
    """Return a loop in windows; ``size(own, full)`` is what it divides by, ``clear`` where it empties ``.grad``."""

    def loop(model: nn.Module, loss_fn: Any, batches: Any, lr: float, n: int) -> None:
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        for start in range(0, len(batches), n):
            window = batches[start : start + n]
            if len(window) < n and not keep:
                return
            for i, (x, y) in enumerate(window):
                if clear == "batch" or (clear == "window" and i == 0):
                    optimizer.zero_grad()
                (loss_fn(model(x), y) / size(len(window), n)).backward()
            optimizer.step()

    return loop


def _still(*arguments: Any) -> None:
    """Leave everything as it is."""


class Accumulated(Exercise):
    """The loop, with a last window that is shorter."""

    name = "accumulated"
    notebook = "07_gradient_accumulation"
    title = "The loop, with its last window"
    level, minutes = "medium", 8
    spec = (
        "Write `accumulated(model, loss_fn, batches, lr, n)`: one epoch of plain SGD with one update for every `n` "
        "batches, and one for what is left at the end, each with the gradient of the mean loss over its own window."
    )
    stub = """
def accumulated(model, loss_fn, batches, lr, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        pass  # your loop
"""
    hints = (
        "`batches` is a list. Which slice of it is the window that begins at `start`?",
        "`range(0, len(batches), n)` gives the starts, and `batches[start : start + n]` is shorter at the end.",
        "For each window: clear, then for each of its batches forward and backward, then one step. Divide each loss "
        "by `len(window)`.",
    )
    mistakes = (
        Mistake(
            "drops-last",
            "The last, shorter window is never used: no step comes after its backward().",
            _windows(keep=False),
        ),
        Mistake(
            "full-size",
            "You divide by n everywhere, but the last window has fewer batches.",
            _windows(lambda own, full: full),
        ),
        Mistake("sum", "The losses are added up, not averaged: divide each one.", _windows(lambda own, full: 1)),
        Mistake(
            "never-clears",
            "`.grad` is never cleared: each window has the earlier ones in it.",
            _windows(clear="never"),
        ),
        Mistake(
            "clears-inside",
            "You clear before each backward(): only the last batch of a window is left when step() comes.",
            _windows(clear="batch"),
        ),
        Mistake(
            "step-each-batch",
            "That is one update a batch: step() belongs after the window.",
            lambda model, loss_fn, batches, lr, n: _windows()(model, loss_fn, batches, lr, 1),
        ),
        Mistake(
            "one-step",
            "That is one step for the whole epoch.",
            lambda model, loss_fn, batches, lr, n: _windows()(model, loss_fn, batches, lr, len(batches)),
        ),
        Mistake("does-not-move", "The weights do not move: is step() there, and `.grad` full when it comes?", _still),
    )
    rounds = 5
    axes = ("weight", "its value afterwards")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a small model, a loss, batches of one size that do not fill the last window, an lr and the window."""
        n = dice.randint(3, 5)
        count = 2 * n + dice.randint(2, n - 1)
        batches = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(count)]
        return nn.Linear(3, 1), mse_loss, batches, dice.uniform(0.05, 0.15), n

    def right(self, model: nn.Module, loss_fn: Any, batches: Any, lr: float, n: int) -> Any:
        """Take each window as one large batch, and its gradient from autograd.grad, which never touches .grad."""
        for start in range(0, len(batches), n):
            x, y = joined(batches[start : start + n])
            descend(loss_fn(model(x), y), model.parameters(), lr)
        return weights(model)

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Compare the weights after the epoch."""
        return trained(answer, *arguments)

    def told(self, *arguments: Any) -> str:
        """Say how many batches there are."""
        return f"{len(arguments[2])} batches, n={arguments[4]}: these are the weights afterwards"

"""The exercise ``whole_loop``: the loop, from memory."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import Tensor, nn

from ..base import Exercise, Mistake
from ..loops import descend, trained, weights


def _accumulate(
    model: nn.Module,
    loss_fn: Any,
    batches: Any,
    lr: float,
    window: int,
    max_norm: float,
    *,
    clear: bool = True,
    divide: str = "own",
    clip: str = "window",
    last: bool = True,
) -> None:
    """Run the loop that is asked for, or with a part of it wrong."""
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        if not last and len(part) < window:
            continue
        if clear:
            optimizer.zero_grad()
        for x, y in part:
            by = {"own": len(part), "window": window, "no": 1}[divide]
            (loss_fn(model(x), y) / by).backward()
            if clip == "batch":
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if clip == "window":
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()


class WholeLoop(Exercise):
    """Accumulation and clipping, from memory."""

    name = "whole_loop"
    notebook = "13_cheat_sheet"
    title = "The loop, from memory"
    level, minutes = "harder", 12
    spec = (
        "Write `whole_loop(model, loss_fn, batches, lr, window, max_norm)`: one epoch of SGD over a list of batches, "
        "`window` of them an update; an update is the mean of its batches, clipped to `max_norm`; the last window may "
        "be short."
    )
    stub = """
def whole_loop(model, loss_fn, batches, lr, window, max_norm):
    pass  # your loop
"""
    hints = (
        "Two loops: one over windows, one over the batches of a window. What belongs into which?",
        "`batches[start : start + window]` is a window, and at the end a shorter one. Divide by its own length.",
        "Once a window: zero_grad, clip, step. Once a batch: forward, the loss divided, backward.",
    )
    mistakes = (
        Mistake(
            "never-clears",
            "`.grad` is never cleared: each window adds to the last.",
            lambda *all: _accumulate(*all, clear=False),
        ),
        Mistake(
            "not-divided",
            "The window's gradients are added up, not averaged.",
            lambda *all: _accumulate(*all, divide="no"),
        ),
        Mistake(
            "divided-by-window",
            "You divided by the window, but the last window has fewer batches.",
            lambda *all: _accumulate(*all, divide="window"),
        ),
        Mistake(
            "last-window-dropped",
            "The last, short window is never used.",
            lambda *all: _accumulate(*all, last=False),
        ),
        Mistake(
            "clips-each-batch",
            "You clip after each batch. Clip once, when the window is complete.",
            lambda *all: _accumulate(*all, clip="batch"),
        ),
        Mistake("never-clips", "Nothing is clipped.", lambda *all: _accumulate(*all, clip="no")),
    )
    rounds = 4
    axes = ("weight", "its value afterwards")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a model, a loss, seven batches of which the last ones need no clipping, and the settings."""
        batches = [(torch.randn(6, 3), (10 if i < 3 else 0.3) * torch.randn(6, 1)) for i in range(7)]
        window = dice.choice((2, 3, 4, 5))
        return nn.Linear(3, 1), nn.functional.mse_loss, batches, dice.uniform(0.05, 0.2), window, dice.uniform(2.0, 3.0)

    def right(self, model: nn.Module, loss_fn: Any, batches: Any, lr: float, window: int, max_norm: float) -> Tensor:
        """Make each update by hand, on the mean loss of its window."""
        for start in range(0, len(batches), window):
            part = batches[start : start + window]
            loss = torch.stack([loss_fn(model(x), y) for x, y in part]).mean()
            descend(loss, model.parameters(), lr, max_norm)
        return weights(model)

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Compare the weights after the loop."""
        return trained(answer, *arguments)

    def told(self, *arguments: Any) -> str:
        """Name the settings."""
        _, _, batches, lr, window, max_norm = arguments
        return f"{len(batches)} batches, window={window}, lr={lr:.2f}, max_norm={max_norm:.1f}: the weights afterwards"

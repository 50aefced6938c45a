"""The exercise ``momentum_path``: momentum with a schedule."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from ..base import Exercise, Mistake
from .shared import walked


def _momentum(form: str) -> Callable[..., list[float]]:
    """Return momentum in a form that is wrong in one respect."""

    def walk(w: float, grads: list[float], lrs: list[float], beta: float) -> list[float]:
        v, walked = 0.0, []
        for g, lr in zip(grads, lrs, strict=True):
            if form == "inside":
                v = beta * v + lr * g
                step = v
            else:
                v = beta * v + {"averaged": (1 - beta) * g}.get(form, g)
                step = lr * {"nesterov": g + beta * v, "plain": g}.get(form, v)
            w -= -step if form == "uphill" else step
            walked.append(w)
        return walked

    return walk


class MomentumPath(Exercise):
    """Momentum in PyTorch's form, where a schedule shows which form it is."""

    name = "momentum_path"
    notebook = "06_optimizer_step"
    title = "Momentum with a schedule"
    level, minutes = "medium", 7
    spec = (
        "Write `momentum_path(w, grads, lrs, beta)`: `torch.optim.SGD` with momentum `beta` moves one weight, a number "
        "that starts at `w`; update i finds the gradient `grads[i]` and the lr `lrs[i]`; return the list of where the "
        "weight is after each update."
    )
    stub = """
def momentum_path(w, grads, lrs, beta):
    return None  # your answer: a list, w after each update
"""
    hints = (
        "Walk through both lists at once: `for g, lr in zip(grads, lrs):`, with a buffer that starts at 0.",
        "Two lines an update: first the buffer, then the weight. In which of the two does PyTorch have the lr?",
        "The buffer is `v = beta * v + g`. The lr is outside.",
    )
    mistakes = (
        Mistake(
            "lr-inside",
            "Your lr is inside the buffer: what was mixed in under an old lr keeps it. In PyTorch the lr is outside.",
            _momentum("inside"),
        ),
        Mistake(
            "averaged",
            "You mix in (1 - beta) times the gradient, as Adam does. SGD's buffer takes all of it.",
            _momentum("averaged"),
        ),
        Mistake("no-momentum", "That is plain SGD: the buffer has no say.", _momentum("plain")),
        Mistake(
            "nesterov", "That is Nesterov's form, `nesterov=True`: move by the buffer alone.", _momentum("nesterov")
        ),
        Mistake("uphill", "That goes uphill: the step is subtracted.", _momentum("uphill")),
    )
    axes = ("update", "weight")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a start, gradients, lrs that differ, and a beta."""
        many = dice.randrange(6, 12)
        grads = [round(dice.uniform(-2, 2), 2) for _ in range(many)]
        lrs = [round(dice.uniform(0.05, 0.5), 2) for _ in range(many)]
        return round(dice.uniform(-3, 3), 2), grads, lrs, round(dice.uniform(0.5, 0.95), 2)

    def right(self, w: float, grads: list[float], lrs: list[float], beta: float) -> Any:
        """Ask torch.optim.SGD."""
        return walked(lambda p: torch.optim.SGD(p, lr=1.0, momentum=beta), w, grads, lrs)

    def told(self, *arguments: Any) -> str:
        """Show how it begins."""
        w, grads, lrs, beta = arguments
        return f"w={w}, beta={beta}, grads that begin {grads[0]}, {grads[1]}, lrs that begin {lrs[0]}, {lrs[1]}"

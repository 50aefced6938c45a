"""The exercises of notebook 03."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from .base import Exercise, Mistake
from .loops import descend, trained, weights

_HOME = "03_forgetting_zero_grad"


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
    notebook = _HOME
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


class CurvatureFrom(Exercise):
    """The formula of the half-period, the other way round."""

    name = "curvature_from"
    notebook = _HOME
    title = "From the swing to the curvature"
    level, minutes = "medium", 8
    spec = (
        "You see a loss that swings, and count the updates from one peak of the loss to the next: write "
        "`curvature_from(lr, loss_period)`, the curvature of the bowl."
    )
    stub = """
def curvature_from(lr, loss_period):
    return None  # your answer
"""
    hints = (
        "How does the period of the loss compare with the half-period of the weight?",
        "They are the same. Solve the formula for the half-period for the curvature.",
        "Take the cosine of both sides of pi / loss_period = arccos(1 - lr * curvature / 2).",
    )
    mistakes = (
        Mistake(
            "times-lr", "That is lr times the curvature: divide by lr.", lambda lr, t: 2 * (1 - math.cos(math.pi / t))
        ),
        Mistake(
            "no-arccos",
            "Good for slow swings only: that is the formula without its arccos.",
            lambda lr, t: (math.pi / t) ** 2 / lr,
        ),
        Mistake(
            "whole-period",
            "You took the loss for the weight: the loss repeats every half-period.",
            lambda lr, t: 2 * (1 - math.cos(2 * math.pi / t)) / lr,
        ),
        Mistake(
            "lost-two",
            "Half of it: where does the 2 of lr * curvature / 2 go?",
            lambda lr, t: (1 - math.cos(math.pi / t)) / lr,
        ),
        Mistake(
            "degrees",
            "Degrees? math.cos wants radians, and half a turn is math.pi.",
            lambda lr, t: 2 * (1 - math.cos(180 / t)) / lr,
        ),
    )
    relative = 0.02  # the period is measured, not computed

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return an lr and the period that a swing on a bowl of random curvature shows when it is measured."""
        lr, product = dice.uniform(0.01, 0.2), dice.uniform(0.5, 3.0)
        self._curvature = product / lr
        return lr, _measured_period(_swing(product))

    def right(self, lr: float, loss_period: float) -> Any:
        """Return the curvature that the swing was made with."""
        return self._curvature

    def told(self, *arguments: Any) -> str:
        """Name both."""
        return f"lr={arguments[0]:.3f}, loss_period={arguments[1]:.2f}"


class PeriodOf(Exercise):
    """Counting peaks, and what lies between them."""

    name = "period_of"
    notebook = _HOME
    title = "Read the period off the curve"
    level, minutes = "harder", 12
    spec = (
        "Write `period_of(losses)`: given the losses of a run that swings, a list of 400 numbers, return the mean "
        "number of updates from one peak to the next, to within 3%."
    )
    stub = """
def period_of(losses):
    return None  # your answer
"""
    hints = (
        "A peak is larger than its two neighbours. Count the updates between the first peak and the last, "
        "and divide: by what?",
        "From the first of five peaks to the fifth there are four periods.",
    )
    mistakes = (
        Mistake(
            "weight-period",
            "That is the period of the weight, twice that of the loss.",
            lambda losses: 2 * _period(losses),
        ),
        Mistake(
            "valleys", "That is half of it: did you count the valleys as well?", lambda losses: _period(losses) / 2
        ),
        Mistake(
            "count",
            "That is the number of peaks, not the updates between them.",
            lambda losses: len(_peaks(losses)),
        ),
        Mistake("first-peak", "That is where the first peak is.", lambda losses: _peaks(losses)[0]),
        Mistake(
            "two-peaks",
            "From the first peak to the second: a whole number, and too coarse. Take the mean over all of them.",
            lambda losses: _peaks(losses)[1] - _peaks(losses)[0],
        ),
    )
    rounds = 60  # from the first peak to the second is within 3% in three cases of four
    relative = 0.03
    axes = ("", "updates")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return the losses of a swing that is five to twenty updates long."""
        self._wanted = dice.uniform(5, 20)
        return ([w * w / 2 for w in _swing(2 * (1 - math.cos(math.pi / self._wanted)), 399)],)

    def right(self, losses: list[float]) -> Any:
        """Return the period that the swing was made with."""
        return self._wanted

    def told(self, *arguments: Any) -> str:
        """Show how the losses begin."""
        return "losses that begin " + ", ".join(f"{loss:.2f}" for loss in arguments[0][:6]) + " ..."


def _swing(product: float, updates: int = 400) -> list[float]:
    """Return the path of plain SGD without clearing on a bowl, from 1; ``product`` is lr times curvature."""
    path, held = [1.0], 0.0
    for _ in range(updates):
        held += product * path[-1]
        path.append(path[-1] - held)
    return path


def _measured_period(path: list[float]) -> float:
    """Return the mean number of updates from one pass through 0 to the next, which is a period of the loss."""
    steps = enumerate(pairwise(path))
    passes = [t + a / (a - b) for t, (a, b) in steps if (a > 0) != (b > 0)]
    return (passes[-1] - passes[0]) / (len(passes) - 1)


def _peaks(losses: list[float]) -> list[int]:
    return [t for t in range(1, len(losses) - 1) if losses[t - 1] < losses[t] >= losses[t + 1]]


def _period(losses: list[float]) -> float:
    peaks = _peaks(losses)
    return (peaks[-1] - peaks[0]) / (len(peaks) - 1)


EXERCISES = (Mended, CurvatureFrom, PeriodOf)

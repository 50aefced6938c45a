"""The exercises of notebook 03."""

from __future__ import annotations

import math
import random

from ..instruments.swing import measure_period
from . import nb00
from .checking import Case, Definition
from .loops import sgd, trained


def swing(product: float, updates: int = 400) -> list[float]:
    """Return the path of plain SGD without clearing on a bowl, from 1; ``product`` is lr times curvature."""
    path, grad = [1.0], 0.0
    for _ in range(updates):
        grad += product * path[-1]
        path.append(path[-1] - grad)
    return path


mended = Definition(
    case=nb00.train_one_epoch_case,
    observe=trained,
    mistakes={
        "does-not-move": lambda *arguments: None,
        "never-clears": sgd(clear="never"),
        "one-step": lambda *arguments: sgd(divide_by=1)(*arguments, n=len(arguments[2])),
    },
    rounds=4,
)


def curvature_from_case(rng: random.Random) -> Case:
    lr, product = rng.uniform(0.01, 0.2), rng.uniform(0.5, 3.0)
    period = measure_period(swing(product)) / 2  # of the loss: the weight passes 0 twice in one of its own
    return (lr, period), f"lr={lr:.3f}, loss_period={period:.2f}"


curvature_from = Definition(
    case=curvature_from_case,
    mistakes={
        "times-lr": lambda lr, period: 2 * (1 - math.cos(math.pi / period)),
        "whole-period": lambda lr, period: 2 * (1 - math.cos(2 * math.pi / period)) / lr,
        "lost-two": lambda lr, period: (1 - math.cos(math.pi / period)) / lr,
    },
    relative=0.02,  # the period is measured, not computed
)


def period_of_case(rng: random.Random) -> Case:
    period = rng.uniform(5, 20)
    losses = [w * w / 2 for w in swing(2 * (1 - math.cos(math.pi / period)), 399)]
    begin = ", ".join(f"{loss:.2f}" for loss in losses[:6])
    return (losses,), f"losses that begin {begin} ..."


def peaks(losses: list[float]) -> list[int]:
    return [t for t in range(1, len(losses) - 1) if losses[t - 1] < losses[t] >= losses[t + 1]]


def mean_period(losses: list[float]) -> float:
    tops = peaks(losses)
    return (tops[-1] - tops[0]) / (len(tops) - 1)


period_of = Definition(
    case=period_of_case,
    mistakes={
        "weight-period": lambda losses: 2 * mean_period(losses),
        "valleys": lambda losses: mean_period(losses) / 2,
        "two-peaks": lambda losses: peaks(losses)[1] - peaks(losses)[0],
    },
    rounds=60,  # from the first peak to the second is within 3% in three cases of four
    relative=0.03,
)

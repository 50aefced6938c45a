"""The checks of the exercises in notebook 00; ``nb00.md`` has their tasks, hints and solutions."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ... import tasks
from ...loop import Recipe, Run
from ..figures.curves import CourseFigure, curves
from .checking import Case, Definition, variant
from .loops import trained


def batches_in_grad_case(rng: random.Random) -> Case:
    updates, accumulate, zero_grad = rng.randint(2, 9), rng.randint(2, 6), rng.random() < 0.5
    text = f"updates={updates}, accumulate={accumulate}, zero_grad={zero_grad}"
    return (updates, accumulate, zero_grad), text


batches_in_grad = Definition(
    case=batches_in_grad_case,
    mistakes={
        "empty": lambda updates, accumulate, zero_grad: 0,
        "emptied-after": lambda updates, accumulate, zero_grad: 0 if zero_grad else updates * accumulate,
        "always-a-window": lambda updates, accumulate, zero_grad: accumulate,
        "never-cleared": lambda updates, accumulate, zero_grad: updates * accumulate,
    },
    rounds=20,  # so that both settings of zero_grad occur
)


def times_applied_case(rng: random.Random) -> Case:
    updates, accumulate, zero_grad = rng.randint(2, 9), rng.randint(1, 4), rng.random() < 0.5
    batch = rng.randint(1, updates * accumulate)
    text = f"batch={batch}, updates={updates}, accumulate={accumulate}, zero_grad={zero_grad}"
    return (batch, updates, accumulate, zero_grad), text


times_applied = Definition(
    case=times_applied_case,
    mistakes={
        "never-once": lambda batch, updates, window, clears: updates - math.ceil(batch / window) + 1,
        "not-its-own": lambda batch, updates, window, clears: 1 if clears else updates - math.ceil(batch / window),
        "no-windows": lambda batch, updates, window, clears: 1 if clears else updates - batch + 1,
    },
    rounds=40,  # enough that a rule wrong for one value of zero_grad passes fewer than one in a million checks
)


def train_one_epoch_case(rng: random.Random) -> Case:
    batches = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(rng.choice((8, 12)))]
    model, lr = nn.Linear(3, 1), rng.uniform(0.05, 0.2)
    text = f"{len(batches)} batches and lr={lr:.3f}: these are the weights afterwards"
    return (model, nn.functional.mse_loss, batches, lr), text


def draw_windows(answer: Callable[..., Any]) -> CourseFigure:
    """Draw the held-out losses while an answer and the solution train copies of one pretrained network further."""
    task = tasks.digits(device="cpu")
    run = Run(task, Recipe(lr=0.2, accumulate=4))
    run.advance(updates=200)

    def losses_of(loop: Callable[..., Any]) -> list[float]:
        model, losses = copy.deepcopy(run.model), []
        model.zero_grad()

        def loss_fn(outputs: Tensor, targets: Tensor) -> Tensor:
            with torch.no_grad():
                losses.append(task.loss_fn(model(x), y).item())
            return task.loss_fn(outputs, targets)

        loop(model, loss_fn, [*task.batches] * 16, 0.2)
        return losses[::4]

    assert task.held_out is not None
    x, y = task.held_out
    lines = {"your loop": losses_of(answer), "each batch applied once": losses_of(variant("windows_of_four"))}
    return curves(lines, "held-out loss, digits, lr 0.2, windows of four batches")


windows_of_four = Definition(
    case=train_one_epoch_case,
    observe=trained,
    draw=draw_windows,
    mistakes={
        "does-not-move": lambda *arguments: None,
        "never-clears": variant("windows_of_four", ("optimizer.zero_grad()", "pass")),
        "each-batch": variant("windows_of_four", ("    optimizer.zero_grad()", "optimizer.zero_grad()")),
    },
    rounds=4,
)

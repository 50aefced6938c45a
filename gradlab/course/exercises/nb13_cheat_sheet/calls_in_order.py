"""The exercise ``calls_in_order``."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from ..definition import Case, Definition
from ..guard import TroubleError
from ..loops import all_weights, sgd_step_by_hand

CALLS = ("zero_grad", "forward", "backward", "unscale_", "clip", "scaler.step", "scaler.update", "scheduler.step")
MAX_NORM = 0.05  # small enough to shorten every gradient of a case
DECAY = 0.5  # what the scheduler does to lr after each update


def case(rng: random.Random) -> Case:
    batches = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(3)]
    return Case(nn.Linear(3, 1), batches, rng.uniform(0.5, 2.0), text="the weights after three updates")


def reference(model: nn.Module, batches: Any, lr: float) -> Tensor:
    for t, (x, y) in enumerate(batches):
        sgd_step_by_hand(mse_loss(model(x), y), model.parameters(), lr * DECAY**t, MAX_NORM)
    return all_weights(model)


def observe(answer: object, model: nn.Module, batches: Any, lr: float) -> Tensor:
    if not isinstance(answer, (list, tuple)) or sorted(map(str, answer)) != sorted(CALLS):
        raise TroubleError(f"The list must hold each of these once: {', '.join(CALLS)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of a scheduler that comes first; the verdict says it
        run(answer, model, batches, lr)
    return all_weights(model)


def run(order: Sequence[str], model: nn.Module, batches: Any, lr: float) -> None:
    """Make the calls one by one, once for each batch."""
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=lr), torch.amp.GradScaler("cpu", init_scale=64.0)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=DECAY)
    losses: list[Tensor] = []
    following = iter(batches)

    def forward() -> None:
        x, y = next(following)
        losses.append(mse_loss(model(x), y))

    def backward() -> None:
        if not losses:
            raise TroubleError("backward comes before the first forward: there is no loss yet")
        scaler.scale(losses[-1]).backward()

    calls: dict[str, Callable[[], object]] = {
        "zero_grad": optimizer.zero_grad,
        "forward": forward,
        "backward": backward,
        "unscale_": lambda: scaler.unscale_(optimizer),
        "clip": lambda: nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM),
        "scaler.step": lambda: scaler.step(optimizer),
        "scaler.update": scaler.update,
        "scheduler.step": scheduler.step,
    }
    for call in [*order] * len(batches):
        calls[call]()


def moved(call: str, before: str) -> list[str]:
    """Return the right order with a call moved to just before another."""
    order = [each for each in CALLS if each != call]
    order.insert(order.index(before), call)
    return order


DEFINITION = Definition(
    case=case,
    reference=reference,
    observe=observe,
    mistakes={
        "clip-before-unscale": moved("clip", before="unscale_"),
        "cleared-before-use": moved("zero_grad", before="scaler.step"),
        "clip-after-step": moved("clip", before="scaler.update"),
        "scheduler-first": moved("scheduler.step", before="scaler.step"),
    },
    rounds=3,
    axes=("weight", "its value after three updates"),
)

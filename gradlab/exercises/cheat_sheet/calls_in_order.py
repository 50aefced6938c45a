"""The exercise ``calls_in_order``: eight calls, in order."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..base import Exercise, Mistake
from ..guard import TroubleError
from ..loops import descend, weights

_CALLS = (
    "zero_grad",
    "forward",
    "backward",
    "unscale_",
    "clip",
    "scaler.step",
    "scaler.update",
    "scheduler.step",
)
_MAX_NORM = 0.05  # small enough to shorten every gradient of a case
_DECAY = 0.5  # what the scheduler does to lr after each update


def _swapped(*moves: tuple[str, str]) -> list[str]:
    """Return the right order with some calls moved to just before another."""
    order = list(_CALLS)
    for call, before in moves:
        order.remove(call)
        order.insert(order.index(before), call)
    return order


class CallsInOrder(Exercise):
    """The eight calls of an update, tried by running them."""

    name = "calls_in_order"
    notebook = "13_cheat_sheet"
    title = "Eight calls, in order"
    level, minutes = "easy", 5
    spec = "Put the eight calls of an update, with scaler, clipping and scheduler, into an order that trains well."
    stub = """
calls_in_order = ["clip", "scheduler.step", "unscale_", "backward",
                  "scaler.update", "forward", "scaler.step", "zero_grad"]
"""
    hints = (
        "What must have happened before a gradient can be clipped? What must the scale not be part of?",
        "backward fills .grad with scaled numbers, unscale_ divides them, clip shortens them, the step uses them.",
        "The scaler updates after its step, and the scheduler comes after the step, too.",
    )
    mistakes = (
        Mistake(
            "clip-before-unscale",
            "You clip the scaled gradient: divided by the scale afterwards, next to nothing is left of it.",
            _swapped(("clip", "unscale_")),
        ),
        Mistake(
            "cleared-before-use",
            "`.grad` is empty when the step comes: you clear between backward and step.",
            _swapped(("zero_grad", "scaler.step")),
        ),
        Mistake(
            "clip-after-step",
            "The step has used the gradient already when you clip it.",
            _swapped(("clip", "scaler.update")),
        ),
        Mistake(
            "scheduler-first",
            "The scheduler comes before the optimizer's step: the first lr is never used.",
            _swapped(("scheduler.step", "scaler.step")),
        ),
    )
    rounds = 3
    axes = ("weight", "its value after three updates")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a small model, three batches and an lr."""
        batches = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(3)]
        return nn.Linear(3, 1), batches, dice.uniform(0.5, 2.0)

    def right(self, model: nn.Module, batches: Any, lr: float) -> Tensor:
        """Make each update by hand: no .grad, no optimizer, no scaler."""
        for x, y in batches:
            descend(nn.functional.mse_loss(model(x), y), model.parameters(), lr, _MAX_NORM)
            lr *= _DECAY
        return weights(model)

    def observe(self, answer: Any, model: nn.Module, batches: Any, lr: float) -> Any:
        """Run the calls in the order given, three times over."""
        if not isinstance(answer, (list, tuple)) or sorted(map(str, answer)) != sorted(_CALLS):
            raise TroubleError(f"The list must hold each of these once: {', '.join(_CALLS)}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns of a scheduler that comes first; the verdict says it
            return _run(answer, model, batches, lr)

    def told(self, *arguments: Any) -> str:
        """Say what the numbers are."""
        return "the weights after three updates"


def _run(order: Sequence[str], model: nn.Module, batches: Any, lr: float) -> Tensor:
    """Make all the objects of a loop and let the calls follow each other."""
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=_DECAY)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    loss: list[Tensor] = []
    for x, y in batches:

        def forward(x: Tensor = x, y: Tensor = y) -> None:
            loss.append(nn.functional.mse_loss(model(x), y))

        calls: dict[str, Callable[[], Any]] = {
            "zero_grad": optimizer.zero_grad,
            "forward": forward,
            "backward": lambda: scaler.scale(loss[-1]).backward(),
            "unscale_": lambda: scaler.unscale_(optimizer),
            "clip": lambda: nn.utils.clip_grad_norm_(model.parameters(), _MAX_NORM),
            "scaler.step": lambda: scaler.step(optimizer),
            "scaler.update": scaler.update,
            "scheduler.step": scheduler.step,
        }
        for call in order:
            if call == "backward" and not loss:
                raise TroubleError("backward comes before the first forward: there is no loss yet")
            calls[call]()
    return weights(model)

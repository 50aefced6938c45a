"""The exercises of notebook 13."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .base import Exercise, Mistake
from .guard import TroubleError
from .loops import descend, trained, weights

_HOME = "13_cheat_sheet"
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
    notebook = _HOME
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
    notebook = _HOME
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


EXERCISES = (CallsInOrder, WholeLoop)

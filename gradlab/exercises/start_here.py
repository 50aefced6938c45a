"""The exercises of notebook 00."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import nn
from torch.nn.functional import mse_loss

from .base import Exercise, Mistake
from .loops import descend, trained, weights

_HOME = "00_start_here"


class BatchesInGrad(Exercise):
    """What is in the buffer, counted."""

    name = "batches_in_grad"
    notebook = _HOME
    title = "Count"
    level, minutes = "easy", 3
    spec = (
        "Write `batches_in_grad(updates, accumulate, zero_grad)`: how many batches' gradients are in `.grad` right "
        "after update number `updates`, before anything else happens?"
    )
    stub = """
def batches_in_grad(updates, accumulate, zero_grad):
    return None  # your answer
"""
    hints = (
        "Do it on paper first: updates=3, accumulate=4. Which calls empty `.grad`, and when was the last one?",
        "`step()` only reads. With zero_grad on, `.grad` was emptied just before the newest window.",
        "With zero_grad off nothing has emptied it since the first batch of all.",
    )
    mistakes = (
        Mistake("empty", "step() does not empty `.grad`.", lambda updates, accumulate, zero_grad: 0),
        Mistake(
            "emptied-after",
            "Nothing empties `.grad` after step(): zero_grad() comes before the next window, which has not begun.",
            lambda updates, accumulate, zero_grad: 0 if zero_grad else updates * accumulate,
        ),
        Mistake(
            "always-a-window",
            "Without zero_grad nothing empties `.grad`, ever.",
            lambda updates, accumulate, zero_grad: accumulate,
        ),
        Mistake(
            "never-cleared",
            "With zero_grad on, `.grad` is emptied before each update.",
            lambda updates, accumulate, zero_grad: updates * accumulate,
        ),
        Mistake(
            "without-the-newest",
            "Close: the newest window is in there too.",
            lambda updates, accumulate, zero_grad: 0 if zero_grad else (updates - 1) * accumulate,
        ),
        Mistake(
            "updates",
            "An update adds a whole window of batches, not one.",
            lambda updates, accumulate, zero_grad: 1 if zero_grad else updates,
        ),
        Mistake(
            "the-other-way",
            "It is the other way round: zero_grad=True means that `.grad` is emptied.",
            lambda updates, accumulate, zero_grad: updates * accumulate if zero_grad else accumulate,
        ),
    )
    rounds = 20  # so that both settings of zero_grad come up

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return the number of updates, the window, and whether ``.grad`` is cleared."""
        return dice.randint(2, 9), dice.randint(2, 6), dice.random() < 0.5

    def right(self, updates: int, accumulate: int, zero_grad: bool) -> Any:
        """Let PyTorch count: each backward() adds exactly 1."""
        w = torch.zeros(1, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(updates):
            if zero_grad:
                optimizer.zero_grad()
            for _ in range(accumulate):
                w.sum().backward()
            optimizer.step()
        return 0 if w.grad is None else int(w.grad.item())

    def told(self, *arguments: Any) -> str:
        """Name all three."""
        return "updates={}, accumulate={}, zero_grad={}".format(*arguments)

    def drawn(self, value: Any) -> Any:
        """One number needs no picture."""
        return None


def _epoch(*, clear: str = "before", step: str = "batch", skip: int = 0, kind: Any = torch.optim.SGD) -> Any:
    """Return a training loop, right or with one thing missing or in another place."""

    def loop(model: nn.Module, loss_fn: Any, batches: Any, lr: float) -> None:
        optimizer = kind(model.parameters(), lr=lr)
        for x, y in batches[: len(batches) - skip]:
            if clear == "before":
                optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            if step == "batch":
                optimizer.step()
        if step == "epoch":
            optimizer.step()

    return loop


class TrainOneEpoch(Exercise):
    """The loop, written from memory."""

    name = "train_one_epoch"
    notebook = _HOME
    title = "The loop from memory"
    level, minutes = "medium", 6
    spec = (
        "Write `train_one_epoch(model, loss_fn, batches, lr)`: one epoch of plain SGD, one update for each batch, in "
        "ordinary PyTorch."
    )
    stub = """
def train_one_epoch(model, loss_fn, batches, lr):
    pass  # your loop
"""
    hints = (
        "Five things happen for each batch: clear, forward, loss, backward, step.",
        "The optimizer is made once, before the loop: `torch.optim.SGD(model.parameters(), lr=lr)`.",
        "In the loop: `optimizer.zero_grad()`, `loss = loss_fn(model(x), y)`, `loss.backward()`, `optimizer.step()`.",
    )
    mistakes = (
        Mistake(
            "does-not-move",
            "The weights have not moved: is step() there, and is `.grad` full when it comes?",
            _epoch(step="never"),
        ),
        Mistake(
            "never-clears",
            "You train without clearing `.grad`: call zero_grad(), with its brackets, for each batch.",
            _epoch(clear="never"),
        ),
        Mistake(
            "one-step",
            "That is one step for the whole epoch, with the sum of all gradients: step() belongs inside the loop.",
            _epoch(clear="never", step="epoch"),
        ),
        Mistake(
            "only-the-last",
            "That is one step for the whole epoch, with the last batch alone: step() belongs inside the loop.",
            _epoch(step="epoch"),
        ),
        Mistake("step-first", "One update is missing: is step() before backward()?", _epoch(skip=1)),
        Mistake("adam", "That is Adam. Plain SGD is wanted.", _epoch(kind=torch.optim.Adam)),
    )
    rounds = 4
    axes = ("weight", "its value afterwards")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a small model, a loss, batches and an lr."""
        batches = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(dice.randint(4, 7))]
        return nn.Linear(3, 1), mse_loss, batches, dice.uniform(0.05, 0.2)

    def right(self, model: nn.Module, loss_fn: Any, batches: Any, lr: float) -> Any:
        """Make each update by hand, which never touches .grad."""
        for x, y in batches:
            descend(loss_fn(model(x), y), model.parameters(), lr)
        return weights(model)

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Compare the weights after the epoch."""
        return trained(answer, *arguments)

    def told(self, *arguments: Any) -> str:
        """Say what the weights belong to."""
        return f"{len(arguments[2])} batches and lr={arguments[3]:.3f}: these are the weights afterwards"


EXERCISES = (BatchesInGrad, TrainOneEpoch)

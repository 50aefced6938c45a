"""The exercise ``batches_in_grad``: count."""

from __future__ import annotations

import random
from typing import Any

import torch

from ..base import Exercise, Mistake


class BatchesInGrad(Exercise):
    """What is in the buffer, counted."""

    name = "batches_in_grad"
    notebook = "00_start_here"
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

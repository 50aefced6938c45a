"""The exercise ``gradient_of_each``: one arrow at a time."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..base import Exercise, Mistake


def _each(keep: Callable[[Tensor, Any], Any], *, clear: bool = False) -> Callable[[Tensor, list[Tensor]], list[Any]]:
    """Return a wrong answer: ``keep(w, before)`` is put into the list after each backward."""

    def answer(w: Tensor, losses: list[Tensor]) -> list[Any]:
        kept = []
        for loss in losses:
            if clear:
                w.grad = None
            before = w.grad  # the tensor itself, no copy of it
            loss.backward()
            kept.append(keep(w, before))
        return kept

    return answer


class GradientOfEach(Exercise):
    """What one backward added: the difference of two sums, where the first one must be a copy."""

    name = "gradient_of_each"
    notebook = "02_backward_adds"
    title = "One arrow at a time"
    level, minutes = "easy", 5
    spec = (
        "Write `gradient_of_each(w, losses)`: call `backward()` on each loss, never clear, and return a list with the "
        "gradient of each loss alone."
    )
    stub = """
def gradient_of_each(w, losses):
    return None  # your answer
"""
    hints = (
        "What a `backward()` adds is `.grad` after it minus `.grad` before it.",
        "`before = w.grad` is a second name for the same tensor: it changes too. What makes a copy?",
        "The first time `.grad` is None, and there is nothing to subtract.",
    )
    mistakes = (
        Mistake(
            "one-tensor",
            "The same numbers in every place: the list holds one tensor many times. Keep a copy, with clone().",
            _each(lambda w, before: w.grad),
        ),
        Mistake(
            "running-sums",
            "These are the sums so far, one longer than the next: subtract what was there before.",
            _each(lambda w, before: w.grad.clone() if w.grad is not None else None),
        ),
        Mistake(
            "minus-itself",
            "After the first all are zero: `.grad` minus itself. What you kept from before is no copy.",
            _each(lambda w, before: w.grad.clone() if before is None else w.grad - before),  # type: ignore[union-attr]
        ),
        Mistake(
            "cleared",
            "The list is right, but you cleared on the way: `w.grad` must hold the sum of all at the end.",
            _each(lambda w, before: w.grad, clear=True),
        ),
        Mistake(
            "nothing-in-grad",
            "The list is right, but nothing is left in `w.grad`, and the sum is still needed. Did you clear after each "
            "loss, or use autograd.grad, which leaves `.grad` alone?",
            lambda w, losses: [torch.autograd.grad(loss, w)[0] for loss in losses],
        ),
    )
    axes = ("the gradients in the list, the last two numbers: w.grad", "gradient")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return two weights and three to five losses of them."""
        w = torch.randn(2, requires_grad=True)
        return w, [((torch.randn(4, 2) @ w - torch.randn(4)) ** 2).mean() for _ in range(dice.randint(3, 5))]

    def right(self, w: Tensor, losses: list[Tensor]) -> Any:
        """Take the gradients from autograd.grad, which never touches .grad."""
        rows = [torch.autograd.grad(loss, w)[0] for loss in losses]
        return {"the list": rows, "w.grad at the end": sum(rows)}

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Compare the list, and what is in .grad afterwards."""
        w, losses = arguments
        rows = answer(w, losses)
        return {"the list": rows, "w.grad at the end": torch.zeros(2) if w.grad is None else w.grad}

    def told(self, *arguments: Any) -> str:
        """Say how many losses there are."""
        return f"{len(arguments[1])} losses of two weights"

    def drawn(self, value: Any) -> Any:
        """Draw the list, and what is left in .grad."""
        return torch.stack([*value["the list"], value["w.grad at the end"]]).detach().reshape(-1)

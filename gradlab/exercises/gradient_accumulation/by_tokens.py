"""The exercise ``by_tokens``: every character the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ..base import Exercise, Mistake
from ..loops import gradient


def _real(window: Any) -> int:
    """Return how many targets of a window count."""
    return sum(int((y != -100).sum()) for _, y in window)


def _tokens(reduction: str, divide_by: Callable[[Any, Any], float]) -> Callable[..., None]:
    """Return a way to send a window backward; ``divide_by(window, y)`` is what a micro-batch's loss is divided by."""

    def backward(model: nn.Module, window: Any) -> None:
        for x, y in window:
            loss = cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-100, reduction=reduction)
            (loss / divide_by(window, y)).backward()

    return backward


class ByTokens(Exercise):
    """Weigh micro-batches by what is in them."""

    name = "by_tokens"
    notebook = "07_gradient_accumulation"
    title = "Every character the same"
    level, minutes = "easy", 5
    spec = (
        "This is a mean of means: mend `by_tokens(model, window)` so that `.grad` holds the gradient of the mean loss "
        "over all characters of the window, padding (targets of `-100`) left out, with one `backward()` a micro-batch."
    )
    stub = """
def by_tokens(model, window):
    for x, y in window:
        output = model(x).flatten(0, 1)
        loss = nn.functional.cross_entropy(output, y.flatten(), ignore_index=-100)
        (loss / len(window)).backward()
"""
    hints = (
        "The mean over everything is a sum over everything, divided by how many there are.",
        '`reduction="sum"` gives the sum of a micro-batch. How many characters has the whole window?',
        "`(y != -100).sum()` counts those of one micro-batch. Add them up before the loop begins.",
    )
    mistakes = (
        Mistake(
            "mean-of-means",
            "Still a mean of means: a character in a short micro-batch counts more than one in a long one.",
            _tokens("mean", lambda window, y: len(window)),
        ),
        Mistake("sum", "The sum is there. Now divide it by the number of characters.", _tokens("sum", lambda *_: 1)),
        Mistake(
            "counts-padding",
            "You count the padding, too: only targets that are not -100 have a loss.",
            _tokens("sum", lambda window, y: sum(b.numel() for _, b in window)),
        ),
        Mistake(
            "own-count",
            "You divide each micro-batch by its own count: that is a sum of means. Divide by the window's total.",
            _tokens("mean", lambda *_: 1),
        ),
        Mistake(
            "by-window",
            "That divides sums by the number of micro-batches: divide by the number of characters.",
            _tokens("sum", lambda window, y: len(window)),
        ),
        Mistake(
            "by-rows",
            "That divides by the number of rows: passages, not characters.",
            _tokens("sum", lambda window, y: sum(len(b) for _, b in window)),
        ),
    )
    rounds = 6
    axes = ("weight", "its gradient")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a small model of characters, and three or four micro-batches of unequal length, padded."""
        model = nn.Sequential(nn.Embedding(6, 3), nn.Linear(3, 6))
        window = []
        for i in range(dice.randint(3, 4)):
            lengths = [dice.randint(2, 4) + 6 * (i % 2), dice.randint(5, 9) + 9 * (i % 2)]
            x = torch.randint(6, (len(lengths), max(lengths)))
            y = torch.randint(6, x.shape)
            for row, length in enumerate(lengths):
                y[row, length:] = -100
            window.append((x, y))
        return model, window

    def right(self, model: nn.Module, window: Any) -> Any:
        """Put all characters into one row, and take the gradient of their mean loss from autograd.grad."""
        output = torch.cat([model(x).flatten(0, 1) for x, _ in window])
        y = torch.cat([y.flatten() for _, y in window])
        loss = cross_entropy(output[y != -100], y[y != -100])
        return gradient(loss, model)

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Compare what stands in .grad afterwards."""
        answer(*arguments)
        held = [(p.grad if p.grad is not None else torch.zeros_like(p)) for p in arguments[0].parameters()]
        return torch.cat([grad.detach().flatten() for grad in held])

    def told(self, *arguments: Any) -> str:
        """Say how many characters each micro-batch has."""
        counts = [_real([part]) for part in arguments[1]]
        return f"micro-batches of {', '.join(map(str, counts))} characters: this is .grad"

"""The exercise ``truncated``: a long sequence in pieces."""

from __future__ import annotations

import math
import random
from typing import Any

import torch
from torch import Tensor

from ..base import Exercise, Mistake


def _chunked(
    w: Tensor,
    xs: Tensor,
    ys: Tensor,
    size: int,
    *,
    again: bool = False,
    clear: bool = False,
    short: bool = True,
    every: bool = True,
) -> Any:
    """Run the loop that is asked for, or begin the memory again, clear, leave out the short last chunk or losses."""
    h = torch.zeros(())
    for at in range(0, len(xs), size):
        h = torch.zeros(()) if again else h.detach()
        if clear:
            w.grad = None
        if at + size > len(xs) and not short:
            break
        loss = torch.zeros(())
        for x, y in zip(xs[at : at + size], ys[at : at + size], strict=True):
            h = torch.tanh(w * h + x)
            loss = (loss if every else 0.0) + (h - y) ** 2
        loss.backward()
    return w.grad


class Truncated(Exercise):
    """Backpropagation through time in chunks."""

    name = "truncated"
    notebook = "02_backward_adds"
    title = "A long sequence in pieces"
    level, minutes = "harder", 12
    spec = (
        "A memory does `h = torch.tanh(w * h + x)` for each `x`, and each step adds `(h - y)**2` to the loss: write "
        "`truncated(w, xs, ys, size)`, which goes through the sequence in chunks of `size` steps, detaches `h` between "
        "them, and returns `w.grad`."
    )
    stub = """
def truncated(w, xs, ys, size):
    h = torch.zeros(())
    return None  # your answer
"""
    hints = (
        "`for start in range(0, len(xs), size)` gives the beginning of each chunk, also of a shorter last one.",
        "In each chunk: `h = h.detach()`, a loss that starts at 0, the steps `xs[start:start + size]`, then one "
        "`backward()`.",
        "The value of h goes on into the next chunk. Only its graph stays behind.",
    )
    mistakes = (
        Mistake(
            "whole",
            "That is the gradient of the whole sequence: nothing was cut off. Is there an `h = h.detach()`? Without "
            "the `h =` it changes nothing.",
            lambda w, xs, ys, size: _chunked(w, xs, ys, len(xs)),
        ),
        Mistake(
            "every-step",
            "You detach at every step: then no step knows of the one before. Detach once a chunk.",
            lambda w, xs, ys, size: _chunked(w, xs, ys, 1),
        ),
        Mistake(
            "begins-again",
            "The memory is lost between the chunks: `detach()` keeps the value of h, zeros do not.",
            lambda *all: _chunked(*all, again=True),
        ),
        Mistake(
            "last-chunk-only",
            "Only the last chunk is in `.grad`: you cleared on the way, or the loss of the others had no backward().",
            lambda *all: _chunked(*all, clear=True),
        ),
        Mistake(
            "last-step-only",
            "In each chunk the loss of the last step only: `loss = ...` throws away that of the steps before it. Add.",
            lambda *all: _chunked(*all, every=False),
        ),
        Mistake(
            "short-dropped",
            "The last chunk is shorter than the others, and you left it out.",
            lambda *all: _chunked(*all, short=False),
        ),
        Mistake(
            "mean",
            "Divided by the number of chunks: here the losses are added, so the gradients are too.",
            lambda w, xs, ys, size: _chunked(w, xs, ys, size) / math.ceil(len(xs) / size),
        ),
    )

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a weight, a sequence that no chunk size divides, and the size."""
        size = dice.randint(2, 4)
        steps = size * dice.randint(2, 3) + dice.randint(1, size - 1)
        w = torch.tensor(dice.choice((-1, 1)) * dice.uniform(0.6, 1.2), requires_grad=True)
        return w, torch.randn(steps), torch.tanh(torch.randn(steps)), size

    def right(self, w: Tensor, xs: Tensor, ys: Tensor, size: int) -> Any:
        """Carry the slope of h along with h, forwards, and forget it where a chunk begins; no graph at all."""
        weight, h, slope, total = w.item(), 0.0, 0.0, 0.0
        for t, (x, y) in enumerate(zip(xs.tolist(), ys.tolist(), strict=True)):
            slope = 0.0 if t % size == 0 else slope
            after = math.tanh(weight * h + x)
            slope = (1 - after**2) * (h + weight * slope)
            h = after
            total += 2 * (h - y) * slope
        return total

    def told(self, *arguments: Any) -> str:
        """Say how long the sequence is."""
        w, xs, _, size = arguments
        return f"w={w.item():.2f}, {len(xs)} steps in chunks of {size}"

"""The exercise ``bytes_moved``: count the bytes of a window."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn

from ..base import Exercise, Mistake


@cache
def _profiled(width: int, element_size: int) -> dict[str, int]:
    """Return the bytes that each way of clearing and adding moves, as the profiler sees it in a layer of this size."""
    from ...course.grad_traffic import traffic

    kind = {2: torch.bfloat16, 4: torch.float32, 8: torch.float64}[element_size]
    layer, x = nn.Linear(width, width + 1, dtype=kind), torch.randn(4, width, dtype=kind)
    seen = traffic(layer, lambda: layer(x).square().mean())
    return {way: seen[way].moved for way in ("zero-fill", "add", "hand-over")}


def _moves(zeros: Callable[[int], float], none: Callable[[int], float]) -> Callable[..., float]:
    """Return an answer that counts so many times the gradients' bytes in a window, with zeros and with None."""

    def answer(parameters: int, element_size: int, window: int, set_to_none: bool) -> float:
        return parameters * element_size * (none if set_to_none else zeros)(window)

    return answer


def _with_zeros(window: int) -> int:
    """Return what is right for zeros: the fill, and an add for each micro-batch."""
    return 1 + 3 * window


def _with_none(window: int) -> int:
    """Return what is right for None: the first is handed over, the others are added."""
    return 3 * (window - 1)


class BytesMoved(Exercise):
    """What clearing and adding read and write in a window."""

    name = "bytes_moved"
    notebook = "05_set_to_none"
    title = "Count the bytes of a window"
    level, minutes = "medium", 10
    spec = (
        "Write `bytes_moved(parameters, element_size, window, set_to_none)`: the bytes that clearing and accumulation "
        "read and write in one update with `window` micro-batches, if every gradient can be handed over."
    )
    stub = """
def bytes_moved(parameters, element_size, window, set_to_none):
    return None  # your answer
"""
    hints = (
        "Go through the window: what does the first `backward()` find in `.grad`, and what does the second find?",
        "An add is two reads and a write. Filling with zeros is a write.",
        "With zeros: one fill, then `window` times an add. With `None`: the first is free, and the others are adds.",
    )
    mistakes = (
        Mistake(
            "numbers",
            "Those are numbers, not bytes.",
            lambda p, e, w, none: p * (_with_none if none else _with_zeros)(w),
        ),
        Mistake(
            "bits",
            "Those are bits, not bytes.",
            lambda p, e, w, none: 8 * p * e * (_with_none if none else _with_zeros)(w),
        ),
        Mistake(
            "as-claimed",
            "That is the article's count. The table in the notebook has another.",
            _moves(lambda w: 3 * w, lambda w: w),
        ),
        Mistake(
            "no-fill",
            "The zeros have to be written, too: one more write.",
            _moves(lambda w: 3 * w, _with_none),
        ),
        Mistake(
            "first-written",
            "With None the first gradient is handed over: nothing is written.",
            _moves(_with_zeros, lambda w: 1 + 3 * (w - 1)),
        ),
        Mistake(
            "first-copied",
            "With None the first gradient is handed over, not copied.",
            _moves(_with_zeros, lambda w: 2 + 3 * (w - 1)),
        ),
        Mistake(
            "first-added",
            "With None the first backward() finds nothing to add to.",
            _moves(_with_zeros, lambda w: 3 * w),
        ),
        Mistake(
            "one-read",
            "An add reads twice: what is there, and what comes.",
            _moves(lambda w: 1 + 2 * w, lambda w: 2 * (w - 1)),
        ),
        Mistake(
            "none-is-free",
            "Only the first backward() of a window finds None. The others add.",
            _moves(_with_zeros, lambda w: 0),
        ),
        Mistake(
            "fill-each-time",
            "zero_grad() runs once in a window, not before each micro-batch.",
            _moves(lambda w: 4 * w, lambda w: 0),
        ),
        Mistake(
            "no-window",
            "backward() runs once for each micro-batch of the window.",
            _moves(lambda w: 4, lambda w: 0),
        ),
    )

    rounds = 30

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return the size of a layer, the size of its numbers, a window and one of the two ways to clear."""
        width = dice.randint(3, 12)
        return (width + 1) ** 2, dice.choice((2, 4, 8)), dice.randint(1, 6), dice.random() < 0.5

    def right(self, parameters: int, element_size: int, window: int, set_to_none: bool) -> Any:
        """Count what the profiler sees of a real layer of this size."""
        seen = _profiled(math.isqrt(parameters) - 1, element_size)
        first = seen["hand-over"] if set_to_none else seen["zero-fill"] + seen["add"]
        return first + (window - 1) * seen["add"]

    def told(self, *arguments: Any) -> str:
        """Name all four."""
        return "bytes_moved({}, {}, {}, {})".format(*arguments)

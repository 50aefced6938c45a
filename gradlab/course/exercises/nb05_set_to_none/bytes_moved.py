"""The exercise ``bytes_moved``."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache

import torch
from torch import nn

from ...grad_traffic import traffic
from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    """Return the size of a layer, the size of its numbers, a window and one of the two ways to clear."""
    width = rng.randint(3, 12)
    arguments = (width + 1) ** 2, rng.choice((2, 4, 8)), rng.randint(1, 6), rng.random() < 0.5
    return Case(*arguments, text=f"bytes_moved{arguments}")


def reference(parameters: int, element_size: int, window: int, set_to_none: bool) -> int:
    seen = profiled(math.isqrt(parameters) - 1, element_size)
    first = seen["hand-over"] if set_to_none else seen["zero-fill"] + seen["add"]
    return first + (window - 1) * seen["add"]


@cache
def profiled(width: int, element_size: int) -> dict[str, int]:
    """Return the bytes that each way of clearing and adding moves, as the profiler sees it in a layer of this size."""
    kind = {2: torch.bfloat16, 4: torch.float32, 8: torch.float64}[element_size]
    layer, x = nn.Linear(width, width + 1, dtype=kind), torch.randn(4, width, dtype=kind)
    seen = traffic(layer, lambda: layer(x).square().mean())
    return {way: seen[way].moved for way in ("zero-fill", "add", "hand-over")}


def moves(
    zeros: Callable[[int], int] = lambda window: 1 + 3 * window,
    none: Callable[[int], int] = lambda window: 3 * (window - 1),
) -> Callable[[int, int, int, bool], int]:
    """Return an answer: how many times a window moves the gradients' bytes, each way; by default the right one."""
    return lambda p, size, window, set_to_none: p * size * (none if set_to_none else zeros)(window)


DEFINITION = Definition(
    case=case,
    reference=reference,
    mistakes={
        "numbers": lambda p, size, window, set_to_none: moves()(p, 1, window, set_to_none),
        "bits": lambda p, size, window, set_to_none: moves()(p, 8 * size, window, set_to_none),
        "as-claimed": moves(lambda window: 3 * window, lambda window: window),
        "no-fill": moves(lambda window: 3 * window),
        "first-written": moves(none=lambda window: 1 + 3 * (window - 1)),
        "first-copied": moves(none=lambda window: 2 + 3 * (window - 1)),
        "first-added": moves(none=lambda window: 3 * window),
        "one-read": moves(lambda window: 1 + 2 * window, lambda window: 2 * (window - 1)),
        "none-is-free": moves(none=lambda window: 0),
        "fill-each-time": moves(lambda window: 4 * window, lambda window: 0),
        "no-window": moves(lambda window: 4, lambda window: 0),
    },
    rounds=30,
)

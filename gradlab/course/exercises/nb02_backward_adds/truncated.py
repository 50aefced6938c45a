"""The exercise ``truncated``."""

from __future__ import annotations

import math
import random

import torch
from torch import Tensor

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    """Return a weight, a sequence that the chunk size does not divide, and the size."""
    size = rng.randint(2, 4)
    steps = size * rng.randint(2, 3) + rng.randint(1, size - 1)
    w = torch.tensor(rng.choice((-1, 1)) * rng.uniform(0.6, 1.2), requires_grad=True)
    text = f"w={w.item():.2f}, {steps} steps in chunks of {size}"
    return Case(w, torch.randn(steps), torch.tanh(torch.randn(steps)), size, text=text)


def parts(w: Tensor, xs: Tensor, ys: Tensor, size: int) -> list[float]:
    """Return what each step's loss adds to w.grad.

    The slope of h goes along with h, forwards, and is forgotten where a chunk begins; no graph at all.
    """
    weight, h, slope, found = w.item(), 0.0, 0.0, []
    for t, (x, y) in enumerate(zip(xs.tolist(), ys.tolist(), strict=True)):
        slope = 0.0 if t % size == 0 else slope
        after = math.tanh(weight * h + x)
        slope = (1 - after**2) * (h + weight * slope)
        h = after
        found.append(2 * (h - y) * slope)
    return found


def each_from_zero(w: Tensor, xs: Tensor, ys: Tensor, size: int) -> float:
    return sum(sum(parts(w, *chunk, size)) for chunk in zip(xs.split(size), ys.split(size), strict=True))


def last_steps(w: Tensor, xs: Tensor, ys: Tensor, size: int) -> float:
    found = parts(w, xs, ys, size)
    return sum(found[size - 1 :: size]) + found[-1]


DEFINITION = Definition(
    case=case,
    reference=lambda *arguments: sum(parts(*arguments)),
    mistakes={
        "whole": lambda w, xs, ys, size: sum(parts(w, xs, ys, len(xs))),
        "every-step": lambda w, xs, ys, size: sum(parts(w, xs, ys, 1)),
        "begins-again": each_from_zero,
        "last-chunk-only": lambda w, xs, ys, size: sum(parts(w, xs, ys, size)[-(len(xs) % size) :]),
        "last-step-only": last_steps,
        "short-dropped": lambda w, xs, ys, size: sum(parts(w, xs, ys, size)[: -(len(xs) % size)]),
        "mean": lambda w, xs, ys, size: sum(parts(w, xs, ys, size)) / math.ceil(len(xs) / size),
    },
)

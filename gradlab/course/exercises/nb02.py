"""The exercises of notebook 02."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from .checking import Case, Definition


def gradient_of_each_case(rng: random.Random) -> Case:
    w = torch.randn(2, requires_grad=True)
    losses = [((torch.randn(4, 2) @ w - torch.randn(4)) ** 2).mean() for _ in range(rng.randint(3, 5))]
    return (w, losses), f"{len(losses)} losses of two weights"


def gradient_of_each_observe(answer: Callable[..., object], w: Tensor, losses: list[Tensor]) -> dict[str, object]:
    rows = answer(w, losses)
    return {"the list": rows, "w.grad at the end": torch.zeros(2) if w.grad is None else w.grad}


def keeping(keep: Callable[[Any], Any], *, clear: bool = False) -> Callable[..., list[Tensor]]:
    """Make an answer that keeps ``keep(w.grad)`` after each backward."""

    def answer(w: Tensor, losses: list[Tensor]) -> list[Tensor]:
        rows = []
        for loss in losses:
            if clear:
                w.grad = None
            loss.backward()
            rows.append(keep(w.grad))
        return rows

    return answer


def minus_itself(w: Tensor, losses: list[Tensor]) -> list[Tensor]:
    """Subtract from `.grad` a second name for the same tensor."""
    first, *others = keeping(Tensor.clone)(w, losses)
    return [first, *(torch.zeros(2) for _ in others)]


gradient_of_each = Definition(
    case=gradient_of_each_case,
    observe=gradient_of_each_observe,
    mistakes={
        "one-tensor": keeping(lambda grad: grad),
        "running-sums": keeping(Tensor.clone),
        "minus-itself": minus_itself,
        "cleared": keeping(lambda grad: grad, clear=True),
    },
)


def memory_gradient_case(rng: random.Random) -> Case:
    w = rng.choice((-1, 1)) * rng.uniform(0.4, 1.4)
    xs = [round(rng.choice((-1, 1)) * rng.uniform(0.3, 2), 2) for _ in range(rng.randint(3, 5))]
    goal = round(memory(w, xs)[-1] + rng.choice((-1, 1)) * rng.uniform(0.5, 2), 2)
    return (round(w, 2), xs, goal), f"w={round(w, 2)}, xs={xs}, goal={goal}"


def memory(w: Any, xs: list[float]) -> list[Any]:
    """Return h before the first step and after each."""
    return list(accumulate(xs, lambda h, x: w * h + x, initial=0.0))


def slope(w: float, xs: list[float], goal: float) -> float:
    """Return the derivative of the loss with respect to the last h."""
    return 2 * (memory(w, xs)[-1] - goal)


def passed_on(w: float, xs: list[float]) -> float:
    """Add the uses, each multiplied by w once for each later step."""
    return sum(h * w**later for later, h in enumerate(reversed(memory(w, xs)[:-1])))


memory_gradient = Definition(
    case=memory_gradient_case,
    mistakes={
        "last-use-only": lambda w, xs, goal: slope(w, xs, goal) * memory(w, xs)[-2],
        "not-passed-on": lambda w, xs, goal: slope(w, xs, goal) * sum(memory(w, xs)[:-1]),
        "lost-two": lambda w, xs, goal: slope(w, xs, goal) / 2 * passed_on(w, xs),
    },
)


def truncated_case(rng: random.Random) -> Case:
    """Return a weight, a sequence that the chunk size does not divide, and the size."""
    size = rng.randint(2, 4)
    steps = size * rng.randint(2, 3) + rng.randint(1, size - 1)
    w = torch.tensor(rng.choice((-1, 1)) * rng.uniform(0.6, 1.2), requires_grad=True)
    text = f"w={w.item():.2f}, {steps} steps in chunks of {size}"
    return (w, torch.randn(steps), torch.tanh(torch.randn(steps)), size), text


def parts(w: Tensor, xs: Tensor, ys: Tensor, size: int) -> list[float]:
    """Return what each step's loss adds to w.grad.

    The slope of h goes along with h, forwards, and is forgotten where a chunk begins; no graph at all.
    """
    weight, h, slope, added = w.item(), 0.0, 0.0, list[float]()
    for t, (x, y) in enumerate(zip(xs.tolist(), ys.tolist(), strict=True)):
        slope = 0.0 if t % size == 0 else slope
        after = math.tanh(weight * h + x)
        slope = (1 - after**2) * (h + weight * slope)
        h = after
        added.append(2 * (h - y) * slope)
    return added


def each_from_zero(w: Tensor, xs: Tensor, ys: Tensor, size: int) -> float:
    return sum(sum(parts(w, *chunk, size)) for chunk in zip(xs.split(size), ys.split(size), strict=True))


truncated = Definition(
    case=truncated_case,
    mistakes={
        "whole": lambda w, xs, ys, size: sum(parts(w, xs, ys, len(xs))),
        "every-step": lambda w, xs, ys, size: sum(parts(w, xs, ys, 1)),
        "begins-again": each_from_zero,
        "last-chunk-only": lambda w, xs, ys, size: sum(parts(w, xs, ys, size)[-(len(xs) % size) :]),
    },
)

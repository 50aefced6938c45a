"""The exercise ``scales_after``."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import torch

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    """Return a run of sixty updates, with overflows apart and in a row."""
    interval = rng.randint(3, 5)
    overflowed = [rng.random() < 0.12 for _ in range(60)]
    # What every mistake needs to show: growth, growth again, an overflow in the middle of a row, two overflows.
    overflowed[: 5 * interval + 1] = [False] * (2 * interval + 1) + [True, True] + [False] * (3 * interval - 2)
    overflowed[2 * interval + 4] = True
    scale = 2.0 ** rng.randint(4, 12)
    text = f"overflowed = {overflowed[:12]} and so on, scale = {scale:g}, growth_interval = {interval}"
    return Case(overflowed, scale, interval, text=text)


def reference(overflowed: list[bool], scale: float, interval: int) -> list[float]:
    """Ask a real GradScaler."""
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler, scales = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=interval), []
    scaler.scale(torch.zeros(()))
    for bad in overflowed:
        weight.grad = torch.full((1,), math.inf if bad else 1.0)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return scales


def by_hand(in_a_row: bool = True, begin_again: bool = True, halve: bool = True) -> Callable[..., list[float]]:
    def answer(overflowed: list[bool], scale: float, interval: int) -> list[float]:
        start, good, scales = scale, 0, []
        for bad in overflowed:
            if bad:
                scale, good = scale / 2 if halve else start, 0 if in_a_row else good
            else:
                good += 1
                if good >= interval:
                    scale, good = scale * 2, 0 if begin_again else good
            scales.append(scale)
        return scales

    return answer


DEFINITION = Definition(
    case=case,
    reference=reference,
    mistakes={
        "not-in-a-row": by_hand(in_a_row=False),
        "never-begins-again": by_hand(begin_again=False),
        "eager": lambda overflowed, scale, interval: reference(overflowed, scale, 1),
        "one-late": lambda overflowed, scale, interval: reference(overflowed, scale, interval + 1),
        "back-to-start": by_hand(halve=False),
        "before": lambda overflowed, scale, interval: [scale, *reference(overflowed, scale, interval)[:-1]],
    },
    plot_values=lambda scales: [math.log2(scale) for scale in scales],
    axes=("update", "scale (powers of two)"),
)

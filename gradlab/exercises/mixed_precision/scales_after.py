"""The exercise ``scales_after``: be the scaler."""

from __future__ import annotations

import math
import random
from typing import Any

import torch

from ..base import Exercise, Mistake


def _scales(
    overflowed: Any,
    scale: float,
    interval: int,
    *,
    cleared: bool = True,
    counted: bool = True,
    eager: bool = False,
    late: int = 0,
) -> list[float]:
    """Return the scale after each update: the rule of update(), or with a mistake in its counting."""
    scales, good = [], 0
    for bad in overflowed:
        if bad:
            scale, good = scale / 2, (0 if cleared else good)
        else:
            good += 1
            if eager or good >= interval + late:
                scale, good = scale * 2, (0 if counted else good)
        scales.append(scale)
    return scales


def _back_to_start(overflowed: Any, scale: float, interval: int) -> list[float]:
    scales, good, now = [], 0, scale
    for bad in overflowed:
        good = 0 if bad else good + 1
        now = scale if bad else now
        if good == interval:
            now, good = now * 2, 0
        scales.append(now)
    return scales


class ScalesAfter(Exercise):
    """The whole of GradScaler.update()."""

    name = "scales_after"
    notebook = "08_mixed_precision"
    title = "Be the scaler"
    level, minutes = "harder", 12
    spec = (
        "Write `scales_after(overflowed, scale, growth_interval)`: for each update of a run (True where its gradients "
        "overflowed) the scale after it, in a list, as a `GradScaler` that starts at `scale` would have it."
    )
    stub = """
def scales_after(overflowed, scale, growth_interval):
    return None  # your answer
"""
    hints = (
        "Two things to remember from one update to the next: the scale, and how many good updates came in a row.",
        "After an overflow the scale is halved. And the row of good updates?",
        "After `growth_interval` good updates in a row the scale is doubled, and the row begins again.",
    )
    mistakes = (
        Mistake(
            "not-in-a-row",
            "You count all good updates. They must come in a row: an overflow sets the count back to 0.",
            lambda *all: _scales(*all, cleared=False),
        ),
        Mistake(
            "never-begins-again",
            "After the first growth you double at every good update: the count must begin again at 0.",
            lambda *all: _scales(*all, counted=False),
        ),
        Mistake(
            "eager",
            "You double after every good update: what is growth_interval for?",
            lambda *all: _scales(*all, eager=True),
        ),
        Mistake(
            "one-late",
            "You double one good update too late: after growth_interval of them, not after one more.",
            lambda *all: _scales(*all, late=1),
        ),
        Mistake(
            "back-to-start",
            "After an overflow you go back to the scale of the start. It is halved, from where it is.",
            _back_to_start,
        ),
        Mistake(
            "before",
            "Each scale comes one update late: you note it before update() and not after it.",
            lambda overflowed, scale, interval: [scale, *_scales(overflowed, scale, interval)[:-1]],
        ),
    )
    axes = ("update", "scale (powers of two)")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a run of sixty updates, with overflows apart and in a row."""
        interval = dice.randint(3, 5)
        overflowed = [dice.random() < 0.12 for _ in range(60)]
        # What every mistake needs to show: growth, growth again, an overflow in the middle of a row, two overflows.
        overflowed[: 5 * interval + 1] = [False] * (2 * interval + 1) + [True, True] + [False] * (3 * interval - 2)
        overflowed[2 * interval + 4] = True
        return overflowed, 2.0 ** dice.randint(4, 12), interval

    def right(self, overflowed: list[bool], scale: float, growth_interval: int) -> Any:
        """Ask a real GradScaler, whose gradients are made to overflow where they shall."""
        weight = torch.zeros(1, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.0)
        scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=growth_interval)
        scaler.scale(torch.zeros(()))
        scales = []
        for bad in overflowed:
            weight.grad = torch.full((1,), math.inf if bad else 1.0)
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        return scales

    def drawn(self, value: Any) -> Any:
        """Draw powers of two: the scale doubles and halves."""
        return [math.log2(scale) for scale in value]

    def told(self, *arguments: Any) -> str:
        """Say how the run begins."""
        overflowed, scale, interval = arguments
        return f"overflowed = {overflowed[:12]} and so on, scale = {scale:g}, growth_interval = {interval}"

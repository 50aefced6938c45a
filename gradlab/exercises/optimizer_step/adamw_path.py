"""The exercise ``adamw_path``: adamW, with gaps."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import torch

from ..base import Exercise, Mistake
from .shared import walked


def _adamw(form: str) -> Callable[..., list[float]]:
    """Return AdamW in a form that is wrong in one respect."""

    def walk(
        w: float,
        grads: list[float | None],
        lr: float,
        weight_decay: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
    ) -> list[float]:
        m = v = 0.0
        t, walked = 0, []
        for grad in grads:
            if grad is None and form != "none-is-zero":
                if form == "decays-always":
                    w -= lr * weight_decay * w
                t += form == "counts-gaps"
                walked.append(w)
                continue
            g = grad or 0.0
            t += 1
            if form == "in-gradient":
                g += weight_decay * w
            elif form != "no-decay":
                w -= weight_decay * w * (1 if form == "decay-without-lr" else lr)
            m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
            one, two = (1.0, 1.0) if form == "no-correction" else (1 - beta1**t, 1 - beta2**t)
            w -= lr * (m / one) / (math.sqrt(v / two) + eps)
            walked.append(w)
        return walked

    return walk


class AdamWPath(Exercise):
    """AdamW from memory, and what it does where there is no gradient."""

    name = "adamw_path"
    notebook = "06_optimizer_step"
    title = "AdamW, with gaps"
    level, minutes = "harder", 13
    spec = (
        "Write `adamw_path(w, grads, lr, weight_decay, beta1, beta2, eps)`: `torch.optim.AdamW` moves one weight, a "
        "number that starts at `w`; update i finds `grads[i]` in `.grad`, a number or None; return the list of where "
        "the weight is after each update."
    )
    stub = """
def adamw_path(w, grads, lr, weight_decay, beta1=0.9, beta2=0.999, eps=1e-8):
    return None  # your answer: a list, w after each update
"""
    hints = (
        "Three notes: `m`, `v` and the count `t` of the steps. The decay comes first and has nothing to do with them.",
        "What does step() do with a parameter whose .grad is None? All of nothing: look at `ByHand` again.",
        "A gap changes neither w, nor m, nor v, nor t. But the list gets an entry for it.",
        "`w -= lr * weight_decay * w`, then Adam: divide m by `1 - beta1**t` and v by `1 - beta2**t`, take the root "
        "of v, add eps.",
    )
    mistakes = (
        Mistake(
            "no-correction",
            "The bias correction is missing: your first steps are too long. "
            "Divide m and v by the share that they have reached.",
            _adamw("no-correction"),
        ),
        Mistake(
            "in-gradient",
            "You add the decay to the gradient: that is `Adam(weight_decay=...)`. AdamW keeps it beside.",
            _adamw("in-gradient"),
        ),
        Mistake("no-decay", "That is Adam: where is the weight decay?", _adamw("no-decay")),
        Mistake(
            "decay-without-lr",
            "The weight shrinks by weight_decay each update; in PyTorch it shrinks by lr times weight_decay.",
            _adamw("decay-without-lr"),
        ),
        Mistake(
            "none-is-zero",
            "You take None for 0. A parameter without a gradient is skipped: no step, no decay, no fading averages.",
            _adamw("none-is-zero"),
        ),
        Mistake(
            "counts-gaps",
            "Your t counts the gaps as well. AdamW counts the steps of a parameter, and a gap is none.",
            _adamw("counts-gaps"),
        ),
        Mistake(
            "decays-always",
            "The weight decays in the gaps, too. A parameter without a gradient is skipped, decay and all.",
            _adamw("decays-always"),
        ),
    )
    axes = ("update", "weight")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a start, gradients with gaps among them, an lr and a decay."""
        grads: list[float | None] = [round(dice.choice((-1, 1)) * dice.uniform(0.2, 3), 2) for _ in range(10)]
        for gap in dice.sample(range(1, 9), 3):
            grads[gap] = None
        start = round(dice.choice((-1, 1)) * dice.uniform(1, 3), 2)
        return start, grads, round(dice.uniform(0.05, 0.3), 2), round(dice.uniform(0.1, 0.5), 2)

    def right(self, w: float, grads: list[float | None], lr: float, weight_decay: float) -> Any:
        """Ask torch.optim.AdamW."""
        return walked(lambda p: torch.optim.AdamW(p, lr=lr, weight_decay=weight_decay), w, grads)

    def told(self, *arguments: Any) -> str:
        """Show how it begins."""
        w, grads, lr, decay = arguments
        some = ", ".join(map(str, grads[:3]))
        return f"w={w}, lr={lr}, weight_decay={decay}, grads that begin {some}, with gaps at {_gaps(grads)}"


def _gaps(grads: list[float | None]) -> str:
    return ", ".join(str(at) for at, grad in enumerate(grads) if grad is None)

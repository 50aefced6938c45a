"""The exercise ``adamw_path``."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import torch

from ..definition import Case, Definition
from .shared import path

Grads = list[float | None]


def case(rng: random.Random) -> Case:
    grads: Grads = [round(rng.choice((-1, 1)) * rng.uniform(0.2, 3), 2) for _ in range(10)]
    gaps = sorted(rng.sample(range(1, 9), 3))
    for gap in gaps:
        grads[gap] = None
    w = round(rng.choice((-1, 1)) * rng.uniform(1, 3), 2)
    lr, decay = round(rng.uniform(0.05, 0.3), 2), round(rng.uniform(0.1, 0.5), 2)
    begin, where = ", ".join(map(str, grads[:3])), ", ".join(map(str, gaps))
    text = f"w={w}, lr={lr}, weight_decay={decay}, grads that begin {begin}, with gaps at {where}"
    return Case(w, grads, lr, decay, text=text)


def reference(w: float, grads: Grads, lr: float, decay: float) -> list[float]:
    return path(torch.optim.AdamW, w, grads, lr=lr, weight_decay=decay)


def by_hand(
    *, correct: bool = True, times_lr: bool = True, count_gaps: bool = False, decay_gaps: bool = False
) -> Callable[..., list[float]]:
    def answer(w: float, grads: Grads, lr: float, decay: float) -> list[float]:
        m, v, t, reached = 0.0, 0.0, 0, []
        for g in grads:
            t += g is not None or count_gaps
            if g is not None or decay_gaps:
                w -= decay * w * (lr if times_lr else 1)
            if g is not None:
                m, v = 0.9 * m + (1 - 0.9) * g, 0.999 * v + (1 - 0.999) * g * g
                share_m, share_v = (1 - 0.9**t, 1 - 0.999**t) if correct else (1, 1)
                w -= lr * (m / share_m) / (math.sqrt(v / share_v) + 1e-8)
            reached.append(w)
        return reached

    return answer


DEFINITION = Definition(
    case=case,
    reference=reference,
    mistakes={
        "no-correction": by_hand(correct=False),
        "in-gradient": lambda w, grads, lr, decay: path(torch.optim.Adam, w, grads, lr=lr, weight_decay=decay),
        "no-decay": lambda w, grads, lr, decay: by_hand()(w, grads, lr, 0.0),
        "decay-without-lr": by_hand(times_lr=False),
        "none-is-zero": lambda w, grads, lr, decay: by_hand()(w, [g or 0.0 for g in grads], lr, decay),
        "counts-gaps": by_hand(count_gaps=True),
        "decays-always": by_hand(decay_gaps=True),
    },
    axes=("update", "weight"),
)

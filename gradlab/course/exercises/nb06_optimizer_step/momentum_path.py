"""The exercise ``momentum_path``."""

from __future__ import annotations

import random

import torch

from ..definition import Case, Definition
from .shared import path


def case(rng: random.Random) -> Case:
    updates = rng.randrange(6, 12)
    grads = [round(rng.uniform(-2, 2), 2) for _ in range(updates)]
    lrs = [round(rng.uniform(0.05, 0.5), 2) for _ in range(updates)]
    w, beta = round(rng.uniform(-3, 3), 2), round(rng.uniform(0.5, 0.95), 2)
    text = f"w={w}, beta={beta}, grads that begin {grads[0]}, {grads[1]}, lrs that begin {lrs[0]}, {lrs[1]}"
    return Case(w, grads, lrs, beta, text=text)


def reference(w: float, grads: list[float], lrs: list[float], beta: float, nesterov: bool = False) -> list[float]:
    return path(torch.optim.SGD, w, grads, lrs, momentum=beta, nesterov=nesterov)


def lr_inside(w: float, grads: list[float], lrs: list[float], beta: float) -> list[float]:
    return reference(w, [lr * g for g, lr in zip(grads, lrs, strict=True)], [1.0] * len(lrs), beta)


DEFINITION = Definition(
    case=case,
    reference=reference,
    mistakes={
        "lr-inside": lr_inside,
        "averaged": lambda w, grads, lrs, beta: reference(w, [(1 - beta) * g for g in grads], lrs, beta),
        "no-momentum": lambda w, grads, lrs, beta: reference(w, grads, lrs, 0.0),
        "nesterov": lambda w, grads, lrs, beta: reference(w, grads, lrs, beta, nesterov=True),
        "uphill": lambda w, grads, lrs, beta: reference(w, [-g for g in grads], lrs, beta),
    },
    axes=("update", "weight"),
)

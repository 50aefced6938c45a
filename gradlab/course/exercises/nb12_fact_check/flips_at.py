"""The exercise ``flips_at``."""

from __future__ import annotations

import math
import random

import torch

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    xs, divide = [round(rng.uniform(0.5, 5), 1) for _ in range(rng.randint(2, 6))], rng.random() < 0.5
    return Case(xs, divide, text=f"xs={xs}, divide={divide}")


def reference(xs: list[float], divide: bool) -> float:
    """Let the loop run with many values of lr at once, and look where it turns, closer and closer."""
    low, high, many = 1e-3, 100.0, 32
    for _ in range(3):
        lrs = torch.logspace(math.log10(low), math.log10(high), many, dtype=torch.float64)
        w = torch.ones_like(lrs)
        for _ in range(5):
            w.requires_grad_()
            loss = torch.stack([(w * x).square().sum() for x in xs]).sum() / (len(xs) if divide else 1)
            w = w.detach() - lrs * torch.autograd.grad(loss, w)[0]
        settled = int((w.abs() < 1).sum())
        low, high = lrs[max(settled - 1, 0)].item(), lrs[min(settled, many - 1)].item()
    return math.sqrt(low * high)


def limit(xs: list[float], divide: bool) -> float:
    return (len(xs) if divide else 1) / sum(x * x for x in xs)


DEFINITION = Definition(
    case=case,
    reference=reference,
    mistakes={
        "lost-two": lambda xs, divide: 2 * limit(xs, divide),
        "best-lr": lambda xs, divide: limit(xs, divide) / 2,
        "never-divides": lambda xs, divide: limit(xs, False),
        "always-divides": lambda xs, divide: limit(xs, True),
        "wrong-way": lambda xs, divide: limit(xs, False) / (len(xs) if divide else 1),
        "square-of-the-sum": lambda xs, divide: limit([sum(xs)], False) * (len(xs) if divide else 1),
    },
    relative=0.01,  # it is measured, not computed
)

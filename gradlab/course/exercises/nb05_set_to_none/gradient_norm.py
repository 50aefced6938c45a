"""The exercise ``gradient_norm``."""

from __future__ import annotations

import math
import random

import torch
from torch import Tensor, nn

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    """Return a model whose gradients are random, and None for some parameters, now and then for all."""
    shapes = [(rng.randint(2, 6), rng.randint(2, 6)) for _ in range(4)]
    model = nn.Sequential(*[nn.Linear(*shape) for shape in shapes])
    every = rng.random() < 0.35
    for number, p in enumerate(model.parameters()):
        none = number == 2 or (number > 2 and rng.random() < 0.3)
        p.grad = None if every or none else torch.randn_like(p)
    return Case(model, text=f"a model of 8 parameters, {8 - len(gradients(model))} of them without a gradient")


def gradients(model: nn.Module) -> list[Tensor]:
    return [p.grad for p in model.parameters() if p.grad is not None]


def norms(model: nn.Module) -> list[float]:
    return [gradient.norm().item() for gradient in gradients(model)]


DEFINITION = Definition(
    case=case,
    reference=lambda model: float(nn.utils.clip_grad_norm_(model.parameters(), math.inf)),  # clips nothing
    mistakes={
        "sum-of-norms": lambda model: sum(norms(model)),
        "no-root": lambda model: sum(norm**2 for norm in norms(model)),
        "largest": lambda model: max(norms(model), default=0),
        "mean-of-norms": lambda model: sum(norms(model)) / max(len(norms(model)), 1),
        "largest-number": lambda model: max((float(part.abs().max()) for part in gradients(model)), default=0),
        "weights": lambda model: math.hypot(*(float(p.detach().norm()) for p in model.parameters())),
        "nothing-is-not-a-number": lambda model: math.hypot(*norms(model)) if norms(model) else math.nan,
    },
    rounds=20,
)

"""The exercise ``gradient_norm``: a norm that does not trip."""

from __future__ import annotations

import math
import random
from typing import Any

import torch
from torch import nn

from ..base import Exercise, Mistake


def _norms(model: nn.Module) -> list[float]:
    return [p.grad.norm().item() for p in model.parameters() if p.grad is not None]


class GradientNorm(Exercise):
    """A norm over gradients of which some are None."""

    name = "gradient_norm"
    notebook = "05_set_to_none"
    title = "A norm that does not trip"
    level, minutes = "easy", 5
    spec = (
        "Write `gradient_norm(model)`: the norm of all gradients taken together, as `clip_grad_norm_` computes it, for "
        "a model in which some `.grad`, or all of them, may be `None`."
    )
    stub = """
def gradient_norm(model):
    return None  # your answer
"""
    hints = (
        "A parameter without a gradient adds nothing: leave it out.",
        "The norm of everything is the root of the sum of all squares.",
        "Square each gradient's norm, add these up, and take the root of the sum. If there is nothing to add, it is 0.",
    )
    mistakes = (
        Mistake(
            "sum-of-norms",
            "That is the sum of the norms. Square them first, and take the root last.",
            lambda model: sum(_norms(model)),
        ),
        Mistake(
            "no-root",
            "That is the square of it: the root is missing.",
            lambda model: sum(norm**2 for norm in _norms(model)),
        ),
        Mistake(
            "largest",
            "That is the largest norm of one parameter.",
            lambda model: max(_norms(model), default=0.0),
        ),
        Mistake(
            "mean-of-norms",
            "That is the mean of the norms.",
            lambda model: sum(_norms(model)) / max(len(_norms(model)), 1),
        ),
        Mistake(
            "largest-number",
            "That is the largest single number, not the norm.",
            lambda model: max((p.grad.abs().max().item() for p in model.parameters() if p.grad is not None), default=0),
        ),
        Mistake(
            "weights",
            "That is the norm of the weights, not of the gradients.",
            lambda model: math.hypot(*(p.detach().norm().item() for p in model.parameters())),
        ),
        Mistake(
            "nothing-is-not-a-number",
            "With no gradient at all there is nothing to add up: the norm is 0.",
            lambda model: math.hypot(*_norms(model)) if _norms(model) else math.nan,
        ),
    )
    rounds = 20

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a model whose gradients are random, and None for some parameters, now and then for all."""
        shapes = [(dice.randint(2, 6), dice.randint(2, 6)) for _ in range(4)]
        model = nn.Sequential(*[nn.Linear(*shape) for shape in shapes])
        every = dice.random() < 0.35
        for number, p in enumerate(model.parameters()):
            none = number == 2 or (number > 2 and dice.random() < 0.3)
            p.grad = None if every or none else torch.randn_like(p)
        return (model,)

    def right(self, model: nn.Module) -> Any:
        """Ask PyTorch, and let it clip nothing."""
        return float(nn.utils.clip_grad_norm_(model.parameters(), math.inf))

    def told(self, *arguments: Any) -> str:
        """Say how many are missing."""
        every = list(arguments[0].parameters())
        return f"a model of {len(every)} parameters, {sum(p.grad is None for p in every)} of them without a gradient"

"""The exercises of notebook 05."""

from __future__ import annotations

import math
import random
from itertools import accumulate

import torch
from torch import Tensor, nn

from .checking import Case, Definition


def gradient_norm_case(rng: random.Random) -> Case:
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


gradient_norm = Definition(
    case=gradient_norm_case,
    reference=lambda model: float(nn.utils.clip_grad_norm_(model.parameters(), math.inf)),  # clips nothing
    mistakes={
        "sum-of-norms": lambda model: sum(norms(model)),
        "no-root": lambda model: sum(norm**2 for norm in norms(model)),
        "nothing-is-not-a-number": lambda model: math.hypot(*norms(model)) if norms(model) else math.nan,
    },
    rounds=20,
)


def bytes_moved_case(rng: random.Random) -> Case:
    """Return the size of a layer, the size of its numbers, a window and one of the two ways to clear."""
    width = rng.randint(3, 12)
    arguments = (width + 1) ** 2, rng.choice((2, 4, 8)), rng.randint(1, 6), rng.random() < 0.5
    return Case(*arguments, text=f"bytes_moved{arguments}")


def bytes_moved_reference(parameters: int, element_size: int, window: int, set_to_none: bool) -> int:
    """With zeros, they are written once and each backward() adds; with None, the first gradient is kept as it is."""
    passes = 3 * (window - 1) if set_to_none else 1 + 3 * window  # an addition reads two and writes one
    return parameters * element_size * passes


bytes_moved = Definition(
    case=bytes_moved_case,
    reference=bytes_moved_reference,
    mistakes={
        "numbers": lambda p, size, window, set_to_none: bytes_moved_reference(p, 1, window, set_to_none),
        "as-claimed": lambda p, size, window, set_to_none: p * size * window * (1 if set_to_none else 3),
        "no-fill": lambda p, size, window, set_to_none: p * size * 3 * (window - set_to_none),
        "first-added": lambda p, size, window, set_to_none: p * size * (3 * window + (not set_to_none)),
    },
    rounds=30,
)


def saved_case(rng: random.Random) -> Case:
    """Return the bytes of a few layers, activations and gradients, the peak before, after or in backward."""
    count, kind = rng.randint(4, 7), rng.choice(("before", "after", "between", "mixed", "mixed"))
    if kind == "between":  # the last layers take more than they give back, the first ones less
        low, high = (sorted(rng.randint(*ends) for _ in range(count)) for ends in ((1, 60), (60, 100)))
        last = rng.randint(1, count - 1)
        a, g = high[last:] + low[:last], low[last:] + high[:last]
    else:
        ends = {"before": (80, 100, 1, 70), "after": (1, 30, 40, 100), "mixed": (1, 100, 1, 100)}[kind]
        a, g = ([rng.randint(*pair) for _ in range(count)] for pair in (ends[:2], ends[2:]))
    return Case(a, g, text=f"saved({a}, {g})")


def alive(a: list[int], g: list[int]) -> list[int]:
    """Return the bytes alive after 0, 1, 2, ... layers of backward, the last layer first, with None."""
    trades = [gradient - activation for activation, gradient in zip(a, g, strict=True)]
    return list(accumulate(reversed(trades), initial=sum(a)))


def saved_reference(a: list[int], g: list[int]) -> int:
    return sum(a) + sum(g) - max(alive(a, g))


saved = Definition(
    case=saved_case,
    reference=saved_reference,
    mistakes={
        "all-gradients": lambda a, g: sum(g),
        "two-ends": lambda a, g: sum(a) + sum(g) - max(sum(a), sum(g)),
        "peak-with-none": lambda a, g: max(alive(a, g)),
    },
    rounds=32,
)

"""The exercises of notebook 05."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import accumulate

import torch
from torch import Tensor, nn

from ..figures.curves import CourseFigure
from ..instruments.peak import PeakSettings, draw_update_memory, measure_update
from .checking import Case, Definition


def in_order(calls: str, *, set_to_none: bool = True) -> Callable[..., None]:
    """Make an update of these calls: "zero_grad forward backward step"."""

    def update_once(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor) -> None:
        for call in calls.split():
            if call == "forward":
                loss = nn.functional.cross_entropy(model(x), y)
            elif call == "zero_grad":
                optimizer.zero_grad(set_to_none=set_to_none)
            else:
                (loss.backward if call == "backward" else optimizer.step)()

    return update_once


def peak_and_weight(update: Callable[..., None], settings: PeakSettings) -> dict[str, float]:
    memory, model = measure_update(update, settings)
    return {"KiB at the peak": round(memory.peak / 1024), "weight": list(model.parameters())[-1][0].item()}


def draw_update(update: Callable[..., None]) -> CourseFigure:
    """Draw the second update's memory, and that of the stub as an outline."""
    now, start = (measure_update(each, SHOWN)[0] for each in (update, in_order("forward zero_grad backward step")))
    return CourseFigure(draw_update_memory(now, start), size=(640, 330))


def update_once_case(rng: random.Random) -> Case:
    """Return the settings of a network whose gradients are not needed at its peak."""
    width, optimizer = rng.choice((64, 128)), rng.choice(("sgd", "adam"))
    settings = PeakSettings(width=width, depth=8, batch=2 * width, optimizer=optimizer)
    return (settings,), f"{optimizer} and a batch of {settings.batch}"


SHOWN = PeakSettings(width=128, depth=8, batch=512)
update_once = Definition(
    case=update_once_case,
    observe=peak_and_weight,
    draw=draw_update,
    mistakes={
        "with-zeros": in_order("zero_grad forward backward step", set_to_none=False),
        "before-step": in_order("forward backward zero_grad step"),
        "never": in_order("forward backward step"),
    },
    rounds=3,
    relative=1e-3,
)


def gradient_norm_case(rng: random.Random) -> Case:
    """Return a model whose gradients are random, and None for some parameters, now and then for all."""
    shapes = [(rng.randint(2, 6), rng.randint(2, 6)) for _ in range(4)]
    model = nn.Sequential(*[nn.Linear(*shape) for shape in shapes])
    every = rng.random() < 0.35
    for number, p in enumerate(model.parameters()):
        none = number == 2 or (number > 2 and rng.random() < 0.3)
        p.grad = None if every or none else torch.randn_like(p)
    return (model,), f"a model of 8 parameters, {8 - len(gradients(model))} of them without a gradient"


def gradients(model: nn.Module) -> list[Tensor]:
    return [p.grad for p in model.parameters() if p.grad is not None]


def norms(model: nn.Module) -> list[float]:
    return [gradient.norm().item() for gradient in gradients(model)]


gradient_norm = Definition(
    case=gradient_norm_case,
    mistakes={
        "sum-of-norms": lambda model: sum(norms(model)),
        "no-root": lambda model: sum(norm**2 for norm in norms(model)),
        "nothing-is-not-a-number": lambda model: math.hypot(*norms(model)) if norms(model) else math.nan,
    },
    rounds=20,
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
    return (a, g), f"saved({a}, {g})"


def alive(a: list[int], g: list[int]) -> list[int]:
    """Return the bytes alive after 0, 1, 2, ... layers of backward, the last layer first, with None."""
    trades = [gradient - activation for activation, gradient in zip(a, g, strict=True)]
    return list(accumulate(reversed(trades), initial=sum(a)))


saved = Definition(
    case=saved_case,
    mistakes={
        "all-gradients": lambda a, g: sum(g),
        "two-ends": lambda a, g: sum(a) + sum(g) - max(sum(a), sum(g)),
        "peak-with-none": lambda a, g: max(alive(a, g)),
    },
    rounds=32,
)

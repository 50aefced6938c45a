"""The checks of the exercises in notebook 05; ``nb05.md`` has their tasks, hints and solutions."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import nn

from ..figures.curves import CourseFigure
from ..instruments.peak import PeakSettings, draw_update_memory, measure_update
from . import exercise_texts
from .checking import Case, Definition, stub_of, variant


def peak_and_weight(update: Callable[..., None], settings: PeakSettings) -> dict[str, float]:
    memory, model = measure_update(update, settings)
    return {"KiB at the peak": round(memory.peak / 1024), "weight": list(model.parameters())[-1][-1].item()}


def draw_update(update: Callable[..., None]) -> CourseFigure:
    """Draw the memory of an answer's second update and, as an outline, the memory of the stub's second update."""
    as_it_came = stub_of(exercise_texts()["update_once"].stub)
    now, start = (measure_update(each, SHOWN)[0] for each in (update, as_it_came))
    return CourseFigure(draw_update_memory(now, start), size=(640, 330))


def update_once_case(rng: random.Random) -> Case:
    """Return a case with the settings of a network whose memory peaks while its gradients are not needed."""
    width, optimizer = rng.choice((64, 128)), rng.choice(("sgd", "adam"))
    settings = PeakSettings(width=width, depth=8, batch=2 * width, optimizer=optimizer)
    return (settings,), f"{optimizer} and a batch of {settings.batch}"


SHOWN = PeakSettings(width=128, depth=8, batch=512)
update_once = Definition(
    case=update_once_case,
    observe=peak_and_weight,
    draw=draw_update,
    mistakes={
        "with-zeros": variant("update_once", ("zero_grad()", "zero_grad(set_to_none=False)")),
        "before-step": variant("update_once", ("loss.backward()", "loss.backward()\n    optimizer.zero_grad()")),
        "never": variant("update_once", ("optimizer.zero_grad()", "pass")),
    },
    rounds=3,
    relative=1e-3,
)


def gradient_norm_case(rng: random.Random) -> Case:
    shapes = [(rng.randint(2, 6), rng.randint(2, 6)) for _ in range(4)]
    model = nn.Sequential(*[nn.Linear(*shape) for shape in shapes])
    every = rng.random() < 0.35
    for number, p in enumerate(model.parameters()):
        none = number == 2 or (number > 2 and rng.random() < 0.3)
        p.grad = None if every or none else torch.randn_like(p)
    without = sum(p.grad is None for p in model.parameters())
    return (model,), f"a model of 8 parameters, {without} of them without a gradient"


gradient_norm = Definition(
    case=gradient_norm_case,
    mistakes={
        "sum-of-norms": variant("gradient_norm", ("(p.grad**2).sum()", "p.grad.norm()"), ("math.sqrt(total)", "total")),
        "no-root": variant("gradient_norm", ("math.sqrt(total)", "total")),
        "nothing-is-not-a-number": variant("gradient_norm", ("math.sqrt(total)", "math.sqrt(total) or math.nan")),
    },
    rounds=20,
)


def saved_case(rng: random.Random) -> Case:
    """Return a case with each layer's bytes of activations and gradients. Memory peaks before, after or in backward."""
    count, kind = rng.randint(4, 7), rng.choice(("before", "after", "between", "mixed", "mixed"))
    if kind == "between":  # backward allocates more than it frees in the last layers, and less in the first
        low, high = (sorted(rng.randint(*ends) for _ in range(count)) for ends in ((1, 60), (60, 100)))
        last = rng.randint(1, count - 1)
        a, g = high[last:] + low[:last], low[last:] + high[:last]
    else:
        ends = {"before": (80, 100, 1, 70), "after": (1, 30, 40, 100), "mixed": (1, 100, 1, 100)}[kind]
        a, g = ([rng.randint(*pair) for _ in range(count)] for pair in (ends[:2], ends[2:]))
    return (a, g), f"saved({a}, {g})"


saved = Definition(
    case=saved_case,
    mistakes={
        "all-gradients": lambda a, g: sum(g),
        "two-ends": lambda a, g: sum(a) + sum(g) - max(sum(a), sum(g)),
        "peak-with-none": variant("saved", ("sum(activations) + sum(gradients) - peak", "peak")),
    },
    rounds=32,
)

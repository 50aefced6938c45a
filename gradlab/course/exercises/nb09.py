"""The checks of the exercises in notebook 09; ``nb09.md`` has their tasks, hints and solutions."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import torch
from torch import nn

from ...drawing import Line
from ...formatting import bytes_text
from ...memory import Ledger
from ..figures.curves import CourseFigure
from ..instruments.peak import CLASSES, PeakSettings, draw_update_memory, measure_peak
from .checking import Case, Definition, variant


def sizes(width: int, depth: int, batch: int) -> tuple[int, ...]:
    """Return the bytes of the weights, activations and batch, and of the temporary memory of backward() and step()."""
    weights = 4 * (depth * (width + 1) * width + CLASSES * (width + 1))
    return weights, 4 * depth * batch * width, batch * (4 * width + 8), 8 * batch * width, 8 * width**2


def peak_bytes_case(rng: random.Random) -> Case:
    """Return a case with the ``sizes`` of a network for a small batch, and for a large batch."""
    width, depth = 32 * rng.randrange(1, 5), rng.randrange(4, 9)
    return tuple(sizes(width, depth, rows * width // 32) for rows in (4, 128)), f"{depth} layers, {width} wide"


def draw_peak_bytes(answer: Callable[..., Any]) -> CourseFigure:
    """Draw the measured memory of an update and, if an answer returns a number, a line at this number of bytes."""
    memory = measure_peak(SHOWN)
    drawing = draw_update_memory(memory, memory)
    if isinstance(level := answer(*sizes(SHOWN.width, SHOWN.depth, SHOWN.batch)), int | float):
        line = Line("answer", (0, level, 1, level), "ink", 2.0, "dashed", f"your formula: {bytes_text(level)}")
        corner = (f"\u2504 your formula {bytes_text(level)}",)
        drawing = replace(drawing, marks=[*drawing.marks, line], corner=corner)
    return CourseFigure(drawing, size=(640, 330))


SHOWN = PeakSettings(width=128, batch=64)
peak_bytes = Definition(
    case=peak_bytes_case,
    observe=lambda answer, few, many: {"few rows": answer(*few), "many rows": answer(*many)},
    draw=draw_peak_bytes,
    mistakes={
        "all-at-once": variant("peak_bytes", ("max(early, late)", "early + weights + step")),
        "only-backward": variant("peak_bytes", ("max(early, late)", "early")),
        "one-average": variant("peak_bytes", ("2 * weights", "weights")),
        "no-batch": variant("peak_bytes", ("inputs + ", "")),
    },
    rounds=4,
    relative=0.01,
)


def evaluate_case(rng: random.Random) -> Case:
    rows, model = rng.randrange(20, 40), nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))
    batches = [(torch.randn(rows, 16), torch.randint(10, (rows,))) for _ in range(rng.randrange(8, 14))]
    return (model, batches), f"{len(batches)} batches of {rows} rows"


def evaluate_observe(answer: Callable[..., object], model: nn.Module, batches: Any) -> dict[str, object]:
    """Return the mean loss that an answer computes on all batches, and a description of its memory and side effects."""
    (_, few), (mean, most) = (run_evaluation(answer, model, some) for some in (batches[:2], batches))
    bytes_kept = "nothing" if most == 0 else "one batch at a time" if most < 1.5 * few else "every batch"
    bytes_kept += ", in eval mode" * (most > 0 and not model.training)
    bytes_kept += ", but gradients stay off" * (not torch.is_grad_enabled())
    bytes_kept += ", but there are gradients now" * any(p.grad is not None for p in model.parameters())
    torch.set_grad_enabled(True)
    return {"mean loss": mean, "kept for backward": bytes_kept}


def run_evaluation(answer: Callable[..., object], model: nn.Module, batches: Any) -> tuple[object, int]:
    """Return the result of an evaluation, and the highest number of bytes that it keeps for backward()."""
    with Ledger(model, (), batches) as ledger:
        mean = answer(model, batches)
    return mean, max((point.high["activations"] for point in ledger.timeline), default=0)


evaluate = Definition(
    case=evaluate_case,
    observe=evaluate_observe,
    mistakes={
        "grows": variant("evaluate", ("no_grad", "enable_grad")),
        "one-batch": variant("evaluate", ("no_grad", "enable_grad"), ("(model(x), y)", "(model(x), y).item()")),
        "eval-mode": variant("evaluate", ("no_grad", "enable_grad"), ("total = 0", "total = 0\n    model.eval()")),
    },
    rounds=2,
)


def peak(width: int, layers: int, rows: int) -> int:
    return measure_peak(PeakSettings(width, layers, rows, optimizer="sgd")).peak


def largest_batch_case(rng: random.Random) -> Case:
    """Return as a case a function that measures a network's peak memory, and a budget that a known batch just fits."""
    width, layers, rows = rng.randrange(24, 48), rng.randrange(4, 7) - 1, rng.randrange(250, 400)
    fits, too_much = peak(width, layers, rows), peak(width, layers, rows + 1)
    budget, calls = fits + rng.randrange(too_much - fits), count(1)

    def peak_of(rows: int) -> int:
        if next(calls) > 3:
            raise RuntimeError("peak_of must be called at most three times, got a fourth call; two are enough")
        return peak(width, layers, rows)

    return (peak_of, budget), f"a budget of {budget:,} bytes"


largest_batch = Definition(
    case=largest_batch_case,
    mistakes={
        "no-constant": lambda peak_of, budget: int(budget // ((peak_of(200) - peak_of(150)) / 50)),
        "too-few-rows": variant("largest_batch", ("150", "1"), ("200", "2"), ("/ 50", "/ 1")),
        "one-too-many": variant("largest_batch", ("200 +", "201 +")),
    },
    rounds=3,
)

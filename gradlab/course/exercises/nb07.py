"""The checks of the exercises in notebook 07; ``nb07.md`` has their tasks, hints and solutions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from ...drawing import Area, Axes, Axis, Drawing, Mark, Text, batch_area, box_points
from ..figures.curves import CourseFigure
from .checking import Case, Definition, variant
from .loops import all_weights, gradient

Window = list[tuple[Tensor, Tensor]]


def windows_case(rng: random.Random) -> Case:
    count, n = rng.randint(5, 12), rng.randint(2, 4)
    return (iter(range(1, count + 1)), n), f"{count} batches, n={n}"


def cut(answer: Callable[..., Iterable[Iterable[int]]], batches: Iterator[int], n: int) -> list[list[int]]:
    """Return the windows of batches that an answer yields, at most 20 because a generator may never end."""
    return [list(window) for window in islice(answer(batches, n), 20)]


def draw_windows(answer: Callable[..., Any]) -> CourseFigure:
    """Draw ten batches, one row for each window of an answer and, if needed, a last row for batches without a step."""
    rows = cut(answer, iter(range(1, 11)), 4)
    lost = sorted(set(range(1, 11)).difference(*rows))
    marks: list[Mark] = []
    for i, row in enumerate([*rows, lost] if lost else rows):
        style = batch_area("added" if row is lost else "applied")
        text = "no step uses them" if row is lost else f"step {i + 1}"
        marks.append(Text(f"row {i}", (text,), 0.3, -i, where="right"))
        for column, batch in enumerate(row):
            marks.append(Area(f"batch {i} {batch}", box_points(column + 3.4, -i, 0.45, 0.4), **style))
            marks.append(Text(f"name {i} {batch}", (str(batch),), column + 3.4, -i, where="center", backed=True))
    axes = Axes(Axis(0.0, 8.0, ticks="none"), Axis(-3.6, 0.6, ticks="none"))
    title = "ten batches, n = 4"
    text = "; ".join(f"step {index}: batches {', '.join(map(str, row))}" for index, row in enumerate(rows, 1))
    return CourseFigure(Drawing(title, marks, (axes,), f"{title}: {text}."), size=(560, 240))


windows = Definition(
    case=windows_case,
    observe=cut,
    draw=draw_windows,
    mistakes={
        "empty-window": variant("windows", ("    if window:\n        yield", "    yield")),
        "never-emptied": variant("windows", ("            window = []\n    if", "    if")),
        "only-the-rest": variant("windows", ("            yield window\n", "")),
    },
    rounds=20,  # n divides the number of batches in about a third of the cases
)


def by_tokens_case(rng: random.Random) -> Case:
    """Return a case with a small character model, and micro-batches of padded sequences of unequal lengths."""
    model, window = nn.Sequential(nn.Embedding(6, 3), nn.Linear(3, 6)), []
    for i in range(rng.randint(3, 4)):
        lengths = [rng.randint(2, 4) + 6 * (i % 2), rng.randint(5, 9) + 9 * (i % 2)]
        x = torch.randint(6, (len(lengths), max(lengths)))
        y = torch.randint(6, x.shape)
        for row, length in enumerate(lengths):
            y[row, length:] = -100
        window.append((x, y))
    counts = ", ".join(str(int((y != -100).sum())) for _, y in window)
    return (model, window), f"micro-batches of {counts} characters: this is .grad"


def by_tokens_observe(answer: Callable[..., object], model: nn.Module, window: Window) -> Tensor:
    """Run an answer, and return ``.grad`` of all parameters as one 1-D tensor, with zeros for None."""
    answer(model, window)
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    return torch.cat([gradient.detach().flatten() for gradient in gradients])


by_tokens = Definition(
    case=by_tokens_case,
    observe=by_tokens_observe,
    mistakes={
        "mean-of-means": variant("by_tokens", ('"sum"', '"mean"'), ("loss / total", "loss / len(window)")),
        "sum": variant("by_tokens", ("loss / total", "loss")),
        "counts-padding": variant("by_tokens", ("(y != -100).sum()", "y.numel()")),
    },
    rounds=6,
)


def one_update_case(rng: random.Random) -> Case:
    """Return a case whose model has an old .grad, and whose max_norm is below or above the gradient's norm."""
    model = nn.Linear(4, 2)
    window = [(torch.randn(3, 4), 3 * torch.randn(3, 2)) for _ in range(rng.randint(3, 5))]
    mean_loss = torch.stack([mse_loss(model(x), y) for x, y in window]).mean()
    norm = gradient(mean_loss, model).norm().item()
    max_norm = norm * (rng.uniform(0.3, 0.6) if rng.random() < 0.5 else rng.uniform(1.2, 2.0))
    mse_loss(model(torch.randn(3, 4)), torch.randn(3, 2)).backward()
    optimizer = torch.optim.SGD(model.parameters(), lr=rng.uniform(0.05, 0.15))
    text = f"a window of {len(window)} and max_norm={max_norm:.3f}"
    return (model, mse_loss, window, optimizer, max_norm), text


def one_update_observe(answer: Callable[..., object], model: nn.Module, *arguments: object) -> dict[str, object]:
    loss = answer(model, *arguments)
    return {"weights": all_weights(model), "loss": loss}


one_update = Definition(
    case=one_update_case,
    observe=one_update_observe,
    mistakes={
        "clips-inside": variant("one_update", ("    nn.utils.clip", "        nn.utils.clip")),
        "clips-nothing": variant("one_update", ("nn.utils.clip_grad_norm_(model.parameters(), max_norm)", "pass")),
        "does-not-clear": variant("one_update", ("optimizer.zero_grad()", "pass")),
        "returns-a-share": variant("one_update", ("total += loss.item()", "total = loss.item()")),
    },
    rounds=16,  # max_norm clips the gradient in about half of the cases, and both kinds must occur
)

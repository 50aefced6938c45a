"""The exercise ``by_tokens``."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..definition import Case, Definition
from ..loops import gradient

Window = list[tuple[Tensor, Tensor]]


def case(rng: random.Random) -> Case:
    """Return a small model of characters, and three or four micro-batches of unequal length, padded."""
    model, window = nn.Sequential(nn.Embedding(6, 3), nn.Linear(3, 6)), []
    for i in range(rng.randint(3, 4)):
        lengths = [rng.randint(2, 4) + 6 * (i % 2), rng.randint(5, 9) + 9 * (i % 2)]
        x = torch.randint(6, (len(lengths), max(lengths)))
        y = torch.randint(6, x.shape)
        for row, length in enumerate(lengths):
            y[row, length:] = -100
        window.append((x, y))
    counts = ", ".join(str(int((y != -100).sum())) for _, y in window)
    return Case(model, window, text=f"micro-batches of {counts} characters: this is .grad")


def reference(model: nn.Module, window: Window) -> Tensor:
    """Put all characters into one row."""
    output = torch.cat([model(x).flatten(0, 1) for x, _ in window])
    y = torch.cat([y.flatten() for _, y in window])
    return gradient(cross_entropy(output[y != -100], y[y != -100]), model)


def observe(answer: Callable[..., object], model: nn.Module, window: Window) -> Tensor:
    """Return what stands in .grad afterwards."""
    answer(model, window)
    held = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    return torch.cat([grad.detach().flatten() for grad in held])


def tokens(reduction: str, divide_by: Callable[[Window], int]) -> Callable[..., None]:
    """Return an answer with this reduction, and this division of each micro-batch's loss."""

    def backward(model: nn.Module, window: Window) -> None:
        for x, y in window:
            loss = cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-100, reduction=reduction)
            (loss / divide_by(window)).backward()

    return backward


DEFINITION = Definition(
    case=case,
    reference=reference,
    observe=observe,
    mistakes={
        "mean-of-means": tokens("mean", len),
        "sum": tokens("sum", lambda window: 1),
        "counts-padding": tokens("sum", lambda window: sum(y.numel() for _, y in window)),
        "own-count": tokens("mean", lambda window: 1),
        "by-window": tokens("sum", len),
        "by-rows": tokens("sum", lambda window: sum(len(y) for _, y in window)),
    },
    rounds=6,
    axes=("weight", "its gradient"),
)

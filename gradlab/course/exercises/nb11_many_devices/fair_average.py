"""The exercise ``fair_average``."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from ..definition import Case, Definition
from ..loops import gradient
from .ranks import Rank, together


def case(rng: random.Random) -> Case:
    """Return a model, and for each rank inputs and targets: of unequal number."""
    few = rng.randint(2, 6)
    many = rng.randint(2 * few, 4 * few)
    counts = rng.choice([(few, many), (many, few)])
    model, shares = nn.Linear(2, 1), [(torch.randn(count, 2), torch.randn(count, 1)) for count in counts]
    text = f"{counts[0]} samples in rank 0 and {counts[1]} samples in rank 1"
    return Case(model, shares, text=text)


def reference(model: nn.Module, shares: Any) -> Tensor:
    """Take the gradient of the mean loss over all samples in one piece."""
    x, y = (torch.cat(parts) for parts in zip(*shares, strict=True))
    return gradient(mse_loss(model(x), y), model).repeat(2)


def observe(answer: Callable[..., Any], model: nn.Module, shares: Any) -> Tensor:
    """Let both ranks run it, and return what both have in ``.grad``."""

    def rank(x: Tensor, y: Tensor) -> Rank:
        mine = copy.deepcopy(model)
        mse_loss(mine(x), y).backward()
        return mine, len(x)

    models = together(answer, lambda: [rank(x, y) for x, y in shares])
    return torch.cat([in_grad(mine, number) for number, mine in enumerate(models)])


def in_grad(model: nn.Module, rank: int) -> Tensor:
    found = [p.grad for p in model.parameters()]
    if any(part is None for part in found):
        raise RuntimeError(f"a .grad of rank {rank} is None")
    return torch.cat([part.flatten() for part in found if part is not None])


def average(*, weighted: bool, by: Callable[[int, float], float]) -> Callable[..., None]:
    """Return what adds up, weighted by samples or not, and divides by ``by(samples, total)``."""

    def run(model: Any, samples: int, all_reduce: Callable[[Tensor], None]) -> None:
        total = torch.tensor(float(samples))
        all_reduce(total)
        for p in model.parameters():
            p.grad *= samples if weighted else 1
            all_reduce(p.grad)
            p.grad /= by(samples, total.item())

    return run


DEFINITION = Definition(
    case=case,
    reference=reference,
    observe=observe,
    mistakes={
        "sum": average(weighted=False, by=lambda samples, total: 1),
        "mean-of-means": average(weighted=False, by=lambda samples, total: 2),
        "unweighted": average(weighted=False, by=lambda samples, total: total),
        "own-count": average(weighted=True, by=lambda samples, total: samples),
        "not-divided": average(weighted=True, by=lambda samples, total: 1),
        "nothing": lambda model, samples, all_reduce: None,
    },
    rounds=5,
    axes=("weights of rank 0, then of rank 1", ".grad"),
)

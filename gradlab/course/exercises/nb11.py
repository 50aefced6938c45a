"""The checks of the exercises in notebook 11; ``nb11.md`` has their tasks, hints and solutions."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from ...scenes import BatchArrow
from ..figures.curves import CourseFigure
from ..instruments.two_ranks import draw_rank_gradients
from ..instruments.two_ranks_numbers import RankGradient
from .checking import Case, Definition, variant

Rank = tuple[nn.Module, int]  # a rank's model and number of samples


class _Waiting(BaseException):
    """Raised when a rank calls an all-reduce whose sum is not known yet; ``except Exception`` does not catch it."""


def together(function: Callable[..., Any], make: Callable[[], list[Rank]]) -> list[nn.Module]:
    """Run ``function(model, samples, all_reduce)`` for each rank in this process, and return the ranks' models.

    Each rank runs up to its first all-reduce, where the tensors of all ranks are summed. Then ``make`` makes new ranks;
    with that sum, they run from the start up to the second all-reduce, and so on. ``function`` must be deterministic.

    Raises RuntimeError if real processes would wait forever.
    """
    sums: list[Tensor] = []
    while True:
        ranks, waiting = make(), []
        for model, samples in ranks:
            try:
                function(model, samples, _all_reduce(sums))
            except _Waiting as rank:
                waiting.append(rank.args[0])
        if not waiting:
            return [model for model, _ in ranks]
        if len(waiting) < len(ranks):
            raise RuntimeError("one rank calls all_reduce more often than another, and would wait forever")
        sums.append(torch.stack(waiting).sum(0))


def _all_reduce(sums: list[Tensor]) -> Callable[[Tensor], None]:
    totals = iter(sums)

    def all_reduce(tensor: Tensor) -> None:
        total = next(totals, None)
        if total is None:
            raise _Waiting(tensor.detach().clone())
        with torch.no_grad():
            tensor.copy_(total)

    return all_reduce


def average_gradients_case(rng: random.Random) -> Case:
    size = rng.randint(2, 4)
    return ([[torch.randn(1, 2), torch.randn(1)] for _ in range(size)],), f"size={size}"


def average_gradients_observe(answer: Callable[..., Any], gradients: list[list[Tensor]]) -> dict[str, list[float]]:
    """Run an answer in all ranks, and return a dict with all gradients of each rank as one list of numbers."""

    def rank(mine: list[Tensor]) -> Rank:
        model = nn.Linear(2, 1)
        for p, gradient in zip(model.parameters(), mine, strict=True):
            nn.init.ones_(p)
            p.grad = gradient.clone()
        return model, 1

    size = len(gradients)
    models = together(lambda model, _, reduce: answer(model, size, reduce), lambda: [rank(mine) for mine in gradients])
    grads = [[p.grad.flatten() for p in m.parameters() if p.grad is not None] for m in models]
    return {f"rank {number}": torch.cat(grad).tolist() if grad else [] for number, grad in enumerate(grads)}


def draw_average(answer: Callable[..., Any]) -> CourseFigure:
    """Draw the gradients of two ranks, and ``.grad`` of each rank after an answer has run."""
    own_grads = [(-2.93, 0.1), (-1.1, -2.09)]
    left = average_gradients_observe(answer, [[torch.tensor([each]), torch.zeros(1)] for each in own_grads])
    arrows = [BatchArrow((1, 1), *each, 1.0, names=(f"rank {number}",)) for number, each in enumerate(own_grads)]
    ranks = [RankGradient((x, y), (arrow,)) for arrow, (x, y, _) in zip(arrows, left.values(), strict=True)]
    return CourseFigure(draw_rank_gradients("after average_gradients()", ranks, ranks), size=(560, 330))


average_gradients = Definition(
    case=average_gradients_case,
    observe=average_gradients_observe,
    draw=draw_average,
    mistakes={
        "sum": variant("average_gradients", ("p.grad /= size", "pass")),
        "weights": variant("average_gradients", ("(p.grad)", "(p.data)"), ("p.grad /=", "p.data /=")),
        "own-share": variant("average_gradients", ("all_reduce(p.grad)", "pass")),
    },
)


def all_reduces_case(rng: random.Random) -> Case:
    accumulate = rng.randint(3, 8)
    batches, buckets, no_sync = rng.randint(2 * accumulate, 6 * accumulate), rng.randint(2, 6), rng.random() < 0.6
    text = f"batches={batches}, accumulate={accumulate}, buckets={buckets}, no_sync={no_sync}"
    return (batches, accumulate, buckets, no_sync), text


all_reduces = Definition(
    case=all_reduces_case,
    mistakes={
        "no-window": lambda batches, accumulate, buckets, no_sync: batches * buckets,
        "steps-only": lambda batches, accumulate, buckets, no_sync: -(-batches // accumulate) * buckets,
        "left-over": variant("all_reduces", ("math.ceil(batches / accumulate)", "batches // accumulate")),
    },
    rounds=20,
)


def fair_average_case(rng: random.Random) -> Case:
    few = rng.randint(2, 6)
    many = rng.randint(2 * few, 4 * few)
    counts = rng.choice([(few, many), (many, few)])
    model, shares = nn.Linear(2, 1), [(torch.randn(count, 2), torch.randn(count, 1)) for count in counts]
    return (model, shares), f"{counts[0]} samples in rank 0 and {counts[1]} samples in rank 1"


def fair_average_observe(answer: Callable[..., Any], model: nn.Module, shares: Any) -> Tensor:
    """Run an answer in both ranks, and return ``.grad`` of both as one 1-D tensor."""

    def rank(x: Tensor, y: Tensor) -> Rank:
        mine = copy.deepcopy(model)
        mse_loss(mine(x), y).backward()
        return mine, len(x)

    models = together(answer, lambda: [rank(x, y) for x, y in shares])
    return torch.cat([p.grad.flatten() for mine in models for p in mine.parameters() if p.grad is not None])


fair_average = Definition(
    case=fair_average_case,
    observe=fair_average_observe,
    mistakes={
        "sum": variant("fair_average", ("samples / total", "1")),
        "mean-of-means": variant("fair_average", ("samples / total", "1 / 2")),
        "own-count": variant("fair_average", ("/ total", ""), ("(p.grad)", "(p.grad)\n        p.grad /= samples")),
    },
    rounds=5,
)

"""The exercise ``fair_average``: an average that is fair to every sample."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..base import Exercise, Mistake
from ..loops import gradient

Collective = Callable[[Tensor], None]


def _summed(model: nn.Module, samples: int, all_reduce: Collective) -> None:
    for p in model.parameters():
        assert p.grad is not None
        all_reduce(p.grad)


def _divided(by: Callable[[int, float], float], weighted: bool) -> Callable[..., None]:
    """Add up, weighted by samples or not, and divide by something."""

    def answer(model: nn.Module, samples: int, all_reduce: Collective) -> None:
        total = torch.tensor(float(samples))
        all_reduce(total)
        for p in model.parameters():
            assert p.grad is not None
            p.grad *= samples if weighted else 1
            all_reduce(p.grad)
            p.grad /= by(samples, total.item())

    return answer


class FairAverage(Exercise):
    """A mean of means, mended."""

    name = "fair_average"
    notebook = "11_many_devices"
    title = "An average that is fair to every sample"
    level, minutes = "harder", 12
    spec = (
        "Write `fair_average(model, samples, all_reduce)`: after `backward()` on the mean loss of its own `samples` "
        "samples, each of two processes calls it, and afterwards every `.grad` must be the gradient of the mean loss "
        "over the samples of both; `all_reduce(tensor)` replaces a tensor by the sum over the processes."
    )
    stub = """
def fair_average(model, samples, all_reduce):
    for p in model.parameters():
        all_reduce(p.grad)
"""
    hints = (
        "A mean over n samples, times n, is a sum over samples. Sums may be added.",
        "How many samples are there in all? No process knows by itself, but `all_reduce` adds up anything.",
        "`total = torch.tensor(float(samples))`, then `all_reduce(total)`. Now every process knows what to multiply "
        "and divide by.",
    )
    mistakes = (
        Mistake(
            "sum",
            "That is the sum of the two gradients: nobody has divided.",
            _summed,
        ),
        Mistake(
            "mean-of-means",
            "That is the mean of two means, which is what DDP does: a sample in the smaller share counts for more.",
            _divided(lambda samples, total: 2.0, weighted=False),
        ),
        Mistake(
            "unweighted",
            "You divide by all samples, but what you add up are means already: multiply by `samples` before.",
            _divided(lambda samples, total: total, weighted=False),
        ),
        Mistake(
            "own-count",
            "You divide by your own `samples`: each process ends with another gradient. All must divide by the same.",
            _divided(lambda samples, total: samples, weighted=True),
        ),
        Mistake(
            "not-divided",
            "That is the gradient of the summed loss: divide by the number of all samples.",
            _divided(lambda samples, total: 1.0, weighted=True),
        ),
        Mistake(
            "nothing",
            "`.grad` is still each process's own: `all_reduce` changes the tensor that you hand over, so hand over "
            "`p.grad` itself, not a copy.",
            lambda model, samples, all_reduce: None,
        ),
    )
    rounds = 5
    axes = ("weights of rank 0, then of rank 1", ".grad")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a model, and for each rank inputs and targets: of unequal number."""
        few = dice.randint(2, 6)
        many = dice.randint(2 * few, 4 * few)
        counts = dice.choice([(few, many), (many, few)])
        return nn.Linear(2, 1), [(torch.randn(count, 2), torch.randn(count, 1)) for count in counts]

    def right(self, model: nn.Module, shares: Any) -> Any:
        """Take the gradient of the mean loss over all samples in one piece."""
        x, y = (torch.cat(parts) for parts in zip(*shares, strict=True))
        return gradient(nn.functional.mse_loss(model(x), y), model).repeat(2)

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Let both ranks run it, and compare what both have in ``.grad``."""
        model, shares = arguments

        def rank(number: int) -> tuple[nn.Module, int]:
            mine, (x, y) = copy.deepcopy(model), shares[number]
            nn.functional.mse_loss(mine(x), y).backward()
            return mine, len(x)

        models = together(answer, rank, len(shares))
        return torch.cat([_gradient(mine, number) for number, mine in enumerate(models)])

    def told(self, *arguments: Any) -> str:
        """Say how many samples each has."""
        return " and ".join(f"{len(x)} samples in rank {rank}" for rank, (x, _) in enumerate(arguments[1]))


class _Waiting(BaseException):
    """A rank has come to an all-reduce whose sum nobody knows yet; no ``except Exception`` catches it."""


def together(function: Any, rank: Callable[[int], tuple[nn.Module, int]], size: int) -> list[nn.Module]:
    """Run ``function(model, samples, all_reduce)`` as ``size`` processes would, in one and without threads.

    All ranks run up to their first all-reduce, where what they hand in is added up; then all of them run again from the
    beginning, with that sum, up to the second, and so on. So a function must do the same each time that it runs.

    Raises RuntimeError where real processes would wait for ever, or could not add up what they hand in.
    """
    sums: list[Tensor] = []
    while True:
        handed: list[Tensor | None] = []
        models = []
        for number in range(size):
            model, samples = rank(number)
            models.append(model)
            handed.append(_up_to_the_next(function, model, samples, sums))
        waiting = [tensor for tensor in handed if tensor is not None]
        if not waiting:
            return models
        if len(waiting) < size:
            raise RuntimeError("one rank calls all_reduce more often than the other, and would wait for ever")
        if len({tensor.shape for tensor in waiting}) > 1:
            shapes = " and ".join(str(tuple(tensor.shape)) for tensor in waiting)
            raise RuntimeError(f"the ranks hand in tensors of different shapes to the same all_reduce: {shapes}")
        sums.append(torch.stack(waiting).sum(0))


def _up_to_the_next(function: Any, model: nn.Module, samples: int, sums: list[Tensor]) -> Tensor | None:
    """Run one rank until an all-reduce without a known sum; return what it hands in, or None where it ends."""
    calls: list[Tensor] = []

    def all_reduce(tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"all_reduce wants a tensor, got {type(tensor).__name__}")
        calls.append(tensor.detach().clone())
        if len(calls) > len(sums):
            raise _Waiting
        with torch.no_grad():
            tensor.copy_(sums[len(calls) - 1])

    try:
        function(model, samples, all_reduce)
    except _Waiting:
        return calls[-1]
    return None


def _gradient(model: nn.Module, rank: int) -> Tensor:
    found = [p.grad for p in model.parameters()]
    if any(part is None for part in found):
        raise RuntimeError(f"a .grad of rank {rank} is None")
    return torch.cat([part.flatten() for part in found if part is not None])

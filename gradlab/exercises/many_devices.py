"""The exercises of notebook 11."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DistributedSampler

from .base import Exercise, Mistake
from .loops import gradient

_HOME = "11_many_devices"


class RankSamples(Exercise):
    """What a DistributedSampler hands out."""

    name = "rank_samples"
    notebook = _HOME
    title = "Who gets which samples?"
    level, minutes = "easy", 5
    spec = (
        "Write `rank_samples(samples, size, rank)`: the list of the numbers of the samples that a rank gets from a "
        "DistributedSampler without shuffling, when `size` processes share `samples` samples, numbered from 0."
    )
    stub = """
def rank_samples(samples, size, rank):
    return None  # your answer
"""
    hints = (
        "With two processes rank 0 begins 0, 2, 4. What does rank 1 begin with? And rank 2 of three?",
        "All ranks get the same number of samples, or they would not make the same number of updates. "
        "What happens to the 11th of 11 samples, when there are two processes?",
        "The list 0 to samples - 1 goes on with 0, 1, ... until its length can be divided by `size`. "
        "Then each rank takes every `size`-th of it.",
    )
    mistakes = (
        Mistake(
            "unequal",
            "Some ranks have one sample more than others: they would wait for an all-reduce that the others never "
            "make. The list goes on from its beginning until it can be divided.",
            lambda samples, size, rank: list(range(rank, samples, size)),
        ),
        Mistake(
            "dropped",
            "All ranks have equally many, but you leave samples out. That is `drop_last=True`; by default the first "
            "ones are used again.",
            lambda samples, size, rank: list(range(rank, samples - samples % size, size)),
        ),
        Mistake(
            "blocks",
            "You cut the list into blocks. DistributedSampler deals it out like cards: one for each rank, then again.",
            lambda samples, size, rank: [
                i % samples for i in range(rank * -(-samples // size), (rank + 1) * -(-samples // size))
            ],
        ),
        Mistake(
            "everything",
            "That is every sample: each process would do all the work.",
            lambda samples, size, rank: list(range(samples)),
        ),
    )
    rounds = 20
    axes = ("place in the list", "sample")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a number of samples that often does not divide, a world size and a rank."""
        size = dice.randint(2, 5)
        return dice.randint(2 * size, 5 * size), size, dice.randrange(size)

    def right(self, samples: int, size: int, rank: int) -> Any:
        """Ask the sampler itself."""
        return list(DistributedSampler(range(samples), size, rank, shuffle=False))  # type: ignore[arg-type, unused-ignore]

    def told(self, *arguments: Any) -> str:
        """Name all three."""
        return "samples={}, size={}, rank={}".format(*arguments)


class AllReduces(Exercise):
    """Counting messages before they are sent."""

    name = "all_reduces"
    notebook = _HOME
    title = "How many all-reduces?"
    level, minutes = "medium", 6
    spec = (
        "A loop under DDP goes through `batches` micro-batches, steps after every `accumulate` of them, and once more "
        "at the end if some are left over; the model fills `buckets` buckets. Write "
        "`all_reduces(batches, accumulate, buckets, no_sync)`: how many all-reduces there are, if all but the last "
        "micro-batch before each step are in `no_sync()` (`no_sync=True`), or none (`no_sync=False`)."
    )
    stub = """
def all_reduces(batches, accumulate, buckets, no_sync):
    return None  # your answer
"""
    hints = (
        "In which calls does DDP average? One backward() that is not silenced sends how many buckets?",
        "Without no_sync every backward() sends all buckets. With it, only the last one before each step().",
        "How many steps are there? 10 micro-batches, 4 at a time: 4, 4 and 2.",
    )
    mistakes = (
        Mistake(
            "no-window",
            "With `no_sync` only the last micro-batch before each step sends; you count every backward().",
            lambda batches, accumulate, buckets, no_sync: batches * buckets,
        ),
        Mistake(
            "steps-only",
            "DDP does not know when you step: without `no_sync` each backward() sends.",
            lambda batches, accumulate, buckets, no_sync: -(-batches // accumulate) * buckets,
        ),
        Mistake(
            "left-over",
            "The last window is not full, but it has a step too, and so an all-reduce: round up.",
            lambda batches, accumulate, buckets, no_sync: (batches // accumulate if no_sync else batches) * buckets,
        ),
        Mistake(
            "one-bucket",
            "Each bucket is an all-reduce of its own: there are `buckets` of them in a backward().",
            lambda batches, accumulate, buckets, no_sync: -(-batches // accumulate) if no_sync else batches,
        ),
        Mistake(
            "the-silent-ones",
            "These are the all-reduces that `no_sync` saves: how many are left?",
            lambda batches, accumulate, buckets, no_sync: (
                (batches - -(-batches // accumulate) if no_sync else batches) * buckets
            ),
        ),
    )
    rounds = 20
    axes = ("", "all-reduces")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return windows that are seldom all full, and more than one bucket."""
        accumulate = dice.randint(3, 8)
        return dice.randint(2 * accumulate, 6 * accumulate), accumulate, dice.randint(2, 6), dice.random() < 0.6

    def right(self, batches: int, accumulate: int, buckets: int, no_sync: bool) -> Any:
        """Go through the loop and count."""
        sent = 0
        for i in range(batches):
            steps = i % accumulate == accumulate - 1 or i == batches - 1
            if steps or not no_sync:
                sent += buckets
        return sent

    def told(self, *arguments: Any) -> str:
        """Name all four."""
        return "batches={}, accumulate={}, buckets={}, no_sync={}".format(*arguments)


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
    notebook = _HOME
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


EXERCISES: tuple[type[Exercise], ...] = (RankSamples, AllReduces, FairAverage)

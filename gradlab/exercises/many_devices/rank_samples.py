"""The exercise ``rank_samples``: who gets which samples?."""

from __future__ import annotations

import random
from typing import Any

from torch.utils.data import DistributedSampler

from ..base import Exercise, Mistake


class RankSamples(Exercise):
    """What a DistributedSampler hands out."""

    name = "rank_samples"
    notebook = "11_many_devices"
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

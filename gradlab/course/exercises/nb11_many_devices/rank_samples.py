"""The exercise ``rank_samples``."""

from __future__ import annotations

import random

from torch.utils.data import DistributedSampler

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    """Return a number of samples that often does not divide, a world size and a rank."""
    size = rng.randint(2, 5)
    samples, rank = rng.randint(2 * size, 5 * size), rng.randrange(size)
    return Case(samples, size, rank, text=f"samples={samples}, size={size}, rank={rank}")


def reference(samples: int, size: int, rank: int) -> list[int]:
    """Ask the sampler itself."""
    return list(DistributedSampler(range(samples), size, rank, shuffle=False))  # type: ignore[arg-type, unused-ignore]


def block(samples: int, size: int, rank: int) -> list[int]:
    each = -(-samples // size)
    return [i % samples for i in range(rank * each, (rank + 1) * each)]


DEFINITION = Definition(
    case=case,
    reference=reference,
    mistakes={
        "unequal": lambda samples, size, rank: list(range(rank, samples, size)),
        "dropped": lambda samples, size, rank: list(range(rank, samples - samples % size, size)),
        "blocks": block,
        "everything": lambda samples, size, rank: list(range(samples)),
    },
    rounds=20,
    axes=("place in the list", "sample"),
)

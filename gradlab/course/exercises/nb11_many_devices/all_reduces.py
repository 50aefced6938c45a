"""The exercise ``all_reduces``."""

from __future__ import annotations

import random

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    """Return windows that are seldom all full, and more than one bucket."""
    accumulate = rng.randint(3, 8)
    batches, buckets, no_sync = rng.randint(2 * accumulate, 6 * accumulate), rng.randint(2, 6), rng.random() < 0.6
    text = f"batches={batches}, accumulate={accumulate}, buckets={buckets}, no_sync={no_sync}"
    return Case(batches, accumulate, buckets, no_sync, text=text)


def reference(batches: int, accumulate: int, buckets: int, no_sync: bool) -> int:
    """Go through the loop and count."""
    sent = 0
    for i in range(batches):
        steps = i % accumulate == accumulate - 1 or i == batches - 1
        if steps or not no_sync:
            sent += buckets
    return sent


DEFINITION = Definition(
    case=case,
    reference=reference,
    mistakes={
        "no-window": lambda batches, accumulate, buckets, no_sync: batches * buckets,
        "steps-only": lambda batches, accumulate, buckets, no_sync: reference(batches, accumulate, buckets, True),
        "left-over": lambda batches, accumulate, buckets, no_sync: (
            (batches // accumulate if no_sync else batches) * buckets
        ),
        "one-bucket": lambda batches, accumulate, buckets, no_sync: reference(batches, accumulate, 1, no_sync),
        "the-silent-ones": lambda batches, accumulate, buckets, no_sync: (
            batches * buckets - no_sync * reference(batches, accumulate, buckets, True)
        ),
    },
    rounds=20,
    axes=("", "all-reduces"),
)

"""The exercise ``all_reduces``: how many all-reduces?."""

from __future__ import annotations

import random
from typing import Any

from ..base import Exercise, Mistake


class AllReduces(Exercise):
    """Counting messages before they are sent."""

    name = "all_reduces"
    notebook = "11_many_devices"
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

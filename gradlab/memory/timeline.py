"""The ledger's own measures: the categories of bytes, and an interval of work with what was alive during it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CATEGORIES = ("weights", "gradients", "optimizer", "activations", "inputs", "other")
"""What a storage can be for: parameters and buffers; somebody's ``.grad``; the optimizer's state; saved for backward;
batches; and everything else that is alive, such as the passing results of a computation."""
WEIGHTS, GRADIENTS, OPTIMIZER, ACTIVATIONS, INPUTS, OTHER = range(len(CATEGORIES))

MOST_POINTS = 2000


@dataclass(frozen=True)
class MemoryPoint:
    """An interval of work on one statement in one module, in bytes by category."""

    statement: str
    """The statement at work: its word in a Run, the line of code under a ``Ledger``."""
    module: str
    """Dotted name of the innermost module at work, forward or backward; "" outside of any."""
    bytes: dict[str, int]
    """Alive at the end of the interval."""
    high: dict[str, int]
    """Alive at its highest moment: how that total was made up, not the most that each category ever had."""
    number: int = 0
    """Which statement it belongs to, counted from 1: the same line may run twice in a row."""

    @property
    def total(self) -> int:
        """Bytes at the end of the interval."""
        return sum(self.bytes.values())

    @property
    def top(self) -> int:
        """Bytes at its highest moment."""
        return sum(self.high.values())


def by_category_name(amounts: Sequence[int]) -> dict[str, int]:
    """Return amounts, in the order of CATEGORIES, by name."""
    return dict(zip(CATEGORIES, amounts, strict=True))

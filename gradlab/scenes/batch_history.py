"""What was inside ``.grad`` at each step of one optimizer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BatchHistory:
    """How many batches were inside ``.grad`` at the steps of an optimizer, as means over columns of ``width`` steps."""

    name: str
    """What to call the optimizer."""
    steps: int
    width: int
    """Steps in a column; the last column may have fewer."""
    fresh: tuple[float, ...]
    """Batches that no step had applied before."""
    stale: tuple[float, ...]
    """Batches that a step had applied before."""
    lost: tuple[float, ...]
    """Batches that were cleared since the step before, and that no step has applied."""

"""What was seen of a training loop, update by update, as plain numbers."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from ...scenes import Arrows


@dataclass(frozen=True)
class UpdateRow:
    """One step of one optimizer, as it found ``.grad``."""

    optimizer: str
    """Its class, numbered where there are several: ``"SGD"``, ``"Adam 2"``; "" for a backward without any."""
    loss: float
    """What was handed to backward() since the step before, added up, without the loss scale; only from the lines of the
    loop whose gradients the step applies."""
    norm: float
    """The norm of ``.grad``."""
    alone: float
    """The sum of the norms of what each fresh batch contributed: at least ``norm`` unless something else is in it.

    NaN at updates that were not looked at closely.
    """
    fresh: int
    """Batches in ``.grad`` that no earlier step had applied."""
    stale: int
    """Batches in it that one had."""
    full_before: bool
    """Whether ``.grad`` held anything but zeros just before the first backward since the step before."""
    tensors: int
    """Parameters of the optimizer ..."""
    with_grad: int
    """... that had a gradient ..."""
    moved: int
    """... and that the step has moved."""
    training: bool
    """Whether all models that the loop knows were in training mode."""
    nodes: int
    """Graph nodes that the loop's names hold on to."""


@dataclass
class LoopHistory:
    """All updates of a run, the oldest first, with some gradients drawn and all calls counted."""

    rows: list[UpdateRow] = field(default_factory=list)
    gradients: dict[int, Arrows] = field(default_factory=dict)
    """What ``.grad`` held at some of the updates, counted from 1."""
    calls: Counter[str] = field(default_factory=Counter)
    """How often what was called: ``"clip"``, ``"GradScaler.step"``, ``"Dropout in training"``."""
    moved: set[int] = field(default_factory=set)
    """The ids of the parameters that a step has moved."""
    updates: int = 0
    """Steps in all, also those beyond the rows that are kept."""

    @property
    def optimizers(self) -> list[str]:
        """The names of the optimizers in the order of their first steps."""
        return list(dict.fromkeys(row.optimizer for row in self.rows))

    def of(self, optimizer: str) -> list[UpdateRow]:
        """Return the rows of one optimizer."""
        return [row for row in self.rows if row.optimizer == optimizer]

    @property
    def first(self) -> list[UpdateRow]:
        """The rows of the optimizer that steps first."""
        return self.of(self.rows[0].optimizer) if self.rows else []

    @property
    def losses(self) -> list[float]:
        """The loss of each update, of the first optimizer."""
        return [row.loss for row in self.first]

    @property
    def broken(self) -> int | None:
        """The first update whose loss or gradient is inf or NaN, None if none is."""
        return next(
            (n for n, row in enumerate(self.rows, 1) if not (math.isfinite(row.loss) and math.isfinite(row.norm))), None
        )

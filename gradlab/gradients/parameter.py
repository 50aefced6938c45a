"""The gradient history of one parameter: what is in its ``.grad``, and what a step has already used.

What is in it is written as spans, runs of consecutive batches as pairs (first, last).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Any

from torch import Tensor
from torch.utils.weak import TensorWeakRef

Span = tuple[int, int]
"""The numbers of the first and the last of some consecutive batches, both inclusive, counted from 1."""
_MOST_SPANS = 64


def union(spans: Iterable[Span]) -> list[Span]:
    """Merge spans that overlap or touch, in ascending order."""
    merged: list[Span] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def within(number: int, spans: Iterable[Span]) -> bool:
    """Return whether a batch is among these."""
    return any(first <= number <= last for first, last in spans)


class GradEvent(Enum):
    """What happened to one ``.grad``, with a value that says more."""

    ADDED = auto()
    """A backward added to it; the value is the number of the backward."""
    CLEARED = auto()
    """It became None."""
    MAYBE_CLEARED = auto()
    """It was written to from outside; the value is its norm, on the device, which is 0 if it was cleared."""
    STEPPED = auto()
    """A step used it; the value is the number of the step."""


class ParameterHistory:
    """Events of one parameter, worked into ``batches`` and ``applied_to`` when they are asked for.

    It holds neither the parameter nor its gradient, so it lives as long as the hooks on the parameter and keeps no
    memory that the loop has let go of.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.batches: list[Span] = []
        self.applied_to = 0
        self.applied_before = 0  # what ``applied_to`` was before the newest step
        self.reused: tuple[int, Span] | None = None  # the newest step that applied batches again, and which
        self.events: list[tuple[GradEvent, Any]] = []
        self.last_grad_ref: TensorWeakRef | None = None  # the tensor that .grad was when last seen ...
        self.version = -1  # ... and its version then
        self.had_grad = False  # was something in .grad when last looked at, as before each backward?
        self.incoming: Tensor | None = None  # squared length of what a backward brings, its dot product with .grad, and
        # the squared length of that, if they are taken
        self.was_added = False  # was the newest contribution added to something?
        self.newest: Tensor | None = None  # the same of the newest contribution

    def changed(self, grad: Tensor) -> bool:
        """Was ``.grad`` written to or exchanged since it was last seen?"""
        return self.last_grad_ref is None or grad._version != self.version or self.last_grad_ref() is not grad

    def remember(self, grad: Tensor) -> None:
        """Take ``.grad`` as it is now for known."""
        if self.last_grad_ref is None or self.last_grad_ref() is not grad:
            self.last_grad_ref = TensorWeakRef(grad)
        self.version = grad._version

    def sync(self) -> None:
        """Work the waiting events into ``batches``, ``applied_to`` and ``reused``."""
        for kind, value in self.events:
            if kind is GradEvent.ADDED:
                self._add(value)
            elif kind is GradEvent.CLEARED or (kind is GradEvent.MAYBE_CLEARED and not value.item()):
                self.batches.clear()  # a norm of exactly 0: zeros hold nothing
            elif kind is GradEvent.STEPPED and self.batches:
                if self.batches[0][0] <= self.applied_to:
                    again = self.applied()
                    self.reused = (value, (again[0][0], again[-1][1]))
                self.applied_before, self.applied_to = self.applied_to, self.batches[-1][1]
        self.events.clear()

    def applied(self) -> list[Span]:
        """Return the batches in ``.grad`` that a step has applied."""
        return [(first, min(last, self.applied_to)) for first, last in self.batches if first <= self.applied_to]

    def leftover(self) -> list[Span]:
        """Return the batches in ``.grad`` that have no business there: those that were applied before the newest came.

        Right after its step every batch is stale. It is a leftover once another batch is added to it, or a second step
        uses it again.
        """
        if not self.batches:
            return []
        last_used = self.applied_to if self.batches[-1][1] > self.applied_to else self.applied_before
        return [(first, min(last, last_used)) for first, last in self.batches if first <= last_used]

    def take(self, other: ParameterHistory) -> None:
        """Become as another one that is synced, and take nothing for known."""
        self.batches, self.reused = list(other.batches), other.reused
        self.applied_to, self.applied_before = other.applied_to, other.applied_before
        self.events, self.last_grad_ref = [], None

    def copy(self) -> ParameterHistory:
        """Return a synced copy that takes nothing for known."""
        self.sync()
        copy = ParameterHistory(self.name)
        copy.take(self)
        return copy

    def _add(self, number: int) -> None:
        if self.batches and self.batches[-1][1] == number - 1:
            self.batches[-1] = (self.batches[-1][0], number)
            return
        self.batches.append((number, number))
        if len(self.batches) > _MOST_SPANS:  # bounded: the two oldest become one, and the gap between them is forgotten
            self.batches[:2] = [(self.batches[0][0], self.batches[1][1])]

"""One parameter's page in the book of gradients: what is in its ``.grad``, and what a step has already used."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.utils.weak import TensorWeakRef

from .spans import Span

_MOST_SPANS = 64


class Entry:
    """Events of one parameter as they come in, folded into ``held`` and ``applied_to`` when somebody asks.

    It holds neither the parameter nor its gradient, so it lives as long as the hooks on the parameter and keeps no
    memory that the loop has let go of.
    """

    __slots__ = (
        "adding",
        "applied_before",
        "applied_to",
        "arriving",
        "events",
        "held",
        "known",
        "name",
        "newest",
        "occupied",
        "reused",
        "vector",
        "version",
    )

    def __init__(self, name: str) -> None:
        """Start with an empty page."""
        self.name = name
        self.held: list[Span] = []
        self.applied_to = 0
        self.applied_before = 0  # what ``applied_to`` was before the newest step
        self.reused: tuple[int, Span] | None = None  # the newest step that applied batches again, and which
        self.events: list[tuple[str, Any]] = []
        self.known: TensorWeakRef | None = None  # the tensor that .grad was when last seen ...
        self.version = -1  # ... and its version then
        self.occupied = False  # was something in .grad when last looked at, as before each backward?
        self.arriving: Tensor | None = None  # norm of what it brings, if it is taken
        self.adding = False  # was the newest contribution added to something?
        self.newest: Tensor | None = None  # norm of the newest contribution, if it was taken
        self.vector: Tensor | None = None  # the newest contribution itself, for tiny models

    def changed(self, grad: Tensor) -> bool:
        """Was ``.grad`` written to or exchanged since it was last seen?"""
        return self.known is None or grad._version != self.version or self.known() is not grad

    def remember(self, grad: Tensor) -> None:
        """Take ``.grad`` as it is now for known."""
        known = self.known
        if known is None or known() is not grad:
            self.known = TensorWeakRef(grad)
        self.version = grad._version

    def fold(self) -> None:
        """Work the waiting events into ``held``, ``applied_to`` and ``reused``."""
        for kind, value in self.events:
            if kind == "add":
                self._add(value)
            elif kind == "clear" or (kind == "doubt" and not value.item()):  # a norm of exactly 0: zeros hold nothing
                self.held.clear()
            elif kind == "step" and self.held:
                if self.held[0][0] <= self.applied_to:
                    again = self.stale()
                    self.reused = (value, (again[0][0], again[-1][1]))
                self.applied_before, self.applied_to = self.applied_to, self.held[-1][1]
        self.events.clear()

    def stale(self) -> list[Span]:
        """Return the batches in ``.grad`` that a step has applied."""
        return [(first, min(last, self.applied_to)) for first, last in self.held if first <= self.applied_to]

    def leftover(self) -> list[Span]:
        """Return the batches in ``.grad`` that have no business there: those that were applied before the newest came.

        Right after its step every batch is stale. It is a leftover once another batch is added to it, or a second step
        uses it again.
        """
        if not self.held:
            return []
        last_used = self.applied_to if self.held[-1][1] > self.applied_to else self.applied_before
        return [(first, min(last, last_used)) for first, last in self.held if first <= last_used]

    def count(self) -> tuple[int, int]:
        """Return how many batches in ``.grad`` belong there and how many are leftovers."""
        left = sum(last - first + 1 for first, last in self.leftover())
        return sum(last - first + 1 for first, last in self.held) - left, left

    def copy(self) -> Entry:
        """Return a folded copy that takes nothing for known."""
        self.fold()
        other = Entry(self.name)
        other.held, other.reused = list(self.held), self.reused
        other.applied_to, other.applied_before = self.applied_to, self.applied_before
        return other

    def _add(self, number: int) -> None:
        if self.held and self.held[-1][1] == number - 1:
            self.held[-1] = (self.held[-1][0], number)
            return
        self.held.append((number, number))
        if len(self.held) > _MOST_SPANS:  # bounded: the two oldest become one, and the gap between them is forgotten
            self.held[:2] = [(self.held[0][0], self.held[1][1])]

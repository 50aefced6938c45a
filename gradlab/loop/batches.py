"""The batches of a task as the loop sees them: a list that notes how far it has been read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex, overload

from torch import Tensor

from .._torch import outside_dispatch_modes

MOST_BATCHES = 10_000
"""Batches that one statement may read; a loop inside a function or a ``with`` block would read for ever."""


class Cursor:
    """How many batches of this epoch have been handed out, and how many since the newest pause."""

    def __init__(self) -> None:
        """Start before the first batch."""
        self.position = 0
        self.reads_since_pause = 0

    def advance_to(self, position: int) -> None:
        """Go to a position; a RuntimeError ends a statement that never comes to a pause."""
        self.position = position
        self.reads_since_pause += 1
        if self.reads_since_pause > MOST_BATCHES:
            self.reads_since_pause = 0
            raise RuntimeError(
                f"one statement read {MOST_BATCHES:,} batches: the loop must stand at the top level of the text, "
                "not in a function or a with block"
            )


class TrackedBatches(list[Any]):
    """A list of ``(x, y)`` that moves a cursor as it is read, so that a loop can be taken up where it stood.

    Each batch is handed out as a copy, as a DataLoader does: it lives as long as the loop holds it, so that its bytes
    come and go, and a loop that changes it in place does not change the data.
    """

    def __init__(self, items: Sequence[Any], cursor: Cursor, first: int = 0) -> None:
        """Hold ``items``, of which the first is batch number ``first`` (from 0) of the epoch."""
        super().__init__(items)
        self._cursor = cursor
        self._first = first

    def __iter__(self) -> Iterator[Any]:
        for place, item in enumerate(super().__iter__(), self._first + 1):
            self._cursor.advance_to(place)
            yield _copy(item)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            start, _, stride = index.indices(len(self))
            window = super().__getitem__(index)
            # Only a plain piece of the epoch can be counted; anything else is an ordinary list.
            return TrackedBatches(window, self._cursor, self._first + start) if stride == 1 else window
        item = super().__getitem__(index)
        self._cursor.advance_to(self._first + index.__index__() % len(self) + 1)
        return _copy(item)


def _copy(item: Any) -> Any:
    if not isinstance(item, (tuple, list)):
        return item
    with outside_dispatch_modes():
        return type(item)(part.clone() if isinstance(part, Tensor) else part for part in item)

"""TrackedBatches, a list of a task's batches that reports how many of the batches a loop has read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, SupportsIndex, overload

from torch import Tensor

from .._torch import outside_dispatch_modes


class TrackedBatches(list[Any]):
    """A list of batches that reports how many of them have been read, so that a loop can be resumed.

    Like a DataLoader, the list returns a new copy of a batch at each access: the memory of the copy is freed when the
    loop drops it, and a loop that changes a batch in place does not change the data.
    """

    def __init__(self, items: Sequence[Any], note_read: Callable[[int], None], first: int = 0) -> None:
        """Wrap an epoch's batches from index ``first`` on; ``note_read`` is called with the number read so far."""
        super().__init__(items)
        self._note_read, self._first = note_read, first

    def __iter__(self) -> Iterator[Any]:
        for position, item in enumerate(super().__iter__(), self._first + 1):
            self._note_read(position)
            yield _copy(item)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            start, _, stride = index.indices(len(self))
            window = super().__getitem__(index)
            # Only a slice of consecutive batches can be tracked; any other slice is an ordinary list.
            return TrackedBatches(window, self._note_read, self._first + start) if stride == 1 else window
        item = super().__getitem__(index)
        self._note_read(self._first + index.__index__() % len(self) + 1)
        return _copy(item)


def _copy(item: Any) -> Any:
    if isinstance(item, dict):
        return {name: _copy(part) for name, part in item.items()}
    if isinstance(item, (tuple, list)):
        return type(item)(map(_copy, item))
    with outside_dispatch_modes():
        return item.clone() if isinstance(item, Tensor) else item

"""Functions of PyTorch that are others while somebody looks, and the same objects again afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Replacement:
    """An attribute that is replaced as long as anybody needs it, in whatever order they come and go.

    ``make(original)`` returns what stands in its place. It is a context manager, for any number of blocks at a time.
    """

    def __init__(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace nothing yet."""
        self._owner, self._name, self._make = owner, name, make
        self._users = 0
        self._original: Any = None

    def __enter__(self) -> None:
        """Replace it, unless it is replaced already."""
        self._users += 1
        if self._users == 1:
            self._original = getattr(self._owner, self._name)
            setattr(self._owner, self._name, self._make(self._original))

    def __exit__(self, *error: object) -> None:
        """Put the original back, if nobody else needs it replaced."""
        self._users -= 1
        if self._users == 0:
            setattr(self._owner, self._name, self._original)
            self._original = None

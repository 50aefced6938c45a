"""Functions of PyTorch that are others while somebody looks, and the same objects again afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Replacement:
    """Attributes that are replaced as long as anybody needs it, in whatever order they come and go.

    Each is an owner, a name, and a function that makes what stands in its place out of the original. It is a context
    manager, for any number of blocks at a time.
    """

    def __init__(self, *attributes: tuple[Any, str, Callable[[Any], Any]]) -> None:
        """Replace nothing yet."""
        self._attributes = attributes
        self._users = 0
        self._originals: list[Any] = []
        self._lock = threading.RLock()  # a collection of garbage inside may end a block in the same thread

    def __enter__(self) -> None:
        """Replace them, unless they are replaced already."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._originals = [getattr(owner, name) for owner, name, _ in self._attributes]
                for (owner, name, make), original in zip(self._attributes, self._originals, strict=True):
                    setattr(owner, name, make(original))

    def __exit__(self, *error: object) -> None:
        """Put the originals back, if nobody else needs them replaced."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                for (owner, name, _), original in zip(self._attributes, self._originals, strict=True):
                    setattr(owner, name, original)

"""Patches: names of PyTorch's that are exchanged for a while, and put back whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Patches:
    """Replacements of attributes of modules and classes; ``undo`` puts back what was there, the newest first."""

    def __init__(self) -> None:
        """Start with none."""
        self._done: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Put ``make(original)`` in the place of ``owner.name``; a name that this PyTorch has not is left out."""
        original = vars(owner).get(name)
        if original is None:
            return
        self._done.append((owner, name, original))
        setattr(owner, name, make(original))

    def undo(self) -> None:
        """Put everything back."""
        while self._done:
            owner, name, original = self._done.pop()
            setattr(owner, name, original)

"""Patches: names of PyTorch's that are exchanged for a while, and put back whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


class Patches:
    """Replacements of attributes of modules and classes; ``undo`` takes them out, also from under newer ones."""

    def __init__(self) -> None:
        """Start with none."""
        self._done: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Put ``make(original)`` in the place of ``owner.name``; a name that this PyTorch has not is left out.

        What ``make`` returns is a function that refers to its argument under the name ``original``.
        """
        original = vars(owner).get(name)
        if original is None:
            return
        replacement = make(original)
        self._done.append((owner, name, replacement))
        setattr(owner, name, replacement)

    def undo(self) -> None:
        """Put everything back, the newest first; under somebody else's patch a replacement stays, and does nothing."""
        while self._done:
            owner, name, replacement = self._done[-1]
            below = _below(replacement).cell_contents
            above = vars(owner).get(name)
            if above is replacement:
                setattr(owner, name, below)
            else:  # two watches that end in another order than they began in: let the newer one call what is below us
                while (cell := _below(above)) is not None and cell.cell_contents is not replacement:
                    above = cell.cell_contents
                if cell is not None:
                    cell.cell_contents = below
            self._done.pop()


def carefully(look: Callable[..., Any]) -> Callable[..., Any]:
    """Keep a failure of ours out of the learner's loop: for methods of what has ``trouble`` and ``give_up(error)``."""

    @wraps(look)
    def careful(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.trouble:
            return None
        try:
            return look(self, *args, **kwargs)
        except Exception as error:
            return self.give_up(error)

    return careful


def _below(function: Any) -> Any:
    """Return the cell in which a replacement keeps what it replaces, None for any other function."""
    code = getattr(function, "__code__", None)
    if code is None or "original" not in code.co_freevars:
        return None
    return function.__closure__[code.co_freevars.index("original")]

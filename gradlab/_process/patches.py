"""Functions of PyTorch that are others for a while, and the same objects again afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

_lock = threading.RLock()  # two threads may begin or end at once; a collection of garbage may end a block inside of one


class Original:
    """What a replacement stands for: it is called like that, and ``call`` is the object itself."""

    __slots__ = ("call", "is_inherited")

    def __init__(self, call: Any, is_inherited: bool) -> None:
        self.call, self.is_inherited = call, is_inherited

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        return self.call(*args, **kwargs)


Make = Callable[[Original], Any]
"""Makes what stands in the place of an original; it calls the original by ``original(...)``, or ``original.call``."""


class Patches:
    """Attributes that are replaced for the time of a block, or until ``undo``.

    It may be entered any number of times, on any threads, in any order: they are replaced until the last block ends.
    Two objects may replace the same attribute, and end in another order than they began in.
    """

    def __init__(self, *attributes: tuple[Any, str, Make]) -> None:
        """Replace nothing yet; each attribute is an owner, a name, and what makes the replacement."""
        self._attributes = attributes
        self._blocks = 0
        self._done: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> None:
        """Replace them, unless they are replaced already."""
        with _lock:
            self._blocks += 1
            if self._blocks == 1:
                for attribute in self._attributes:
                    self.replace(*attribute)

    def __exit__(self, *error: object) -> None:
        """Put the originals back, if this is the last block."""
        with _lock:
            self._blocks -= 1
            if self._blocks == 0:
                self.undo()

    def replace(self, owner: Any, name: str, make: Make) -> None:
        """Put ``make(original)`` in the place of ``owner.name`` until ``undo``.

        A name that a module or a class does not define itself is left out; that of another object may be its class's.
        """
        with _lock:
            is_inherited = owner is not None and name not in vars(owner)
            if owner is None or (is_inherited and isinstance(owner, (type, ModuleType))):
                return
            original = Original(getattr(owner, name) if is_inherited else vars(owner)[name], is_inherited)
            replacement = make(original)
            replacement.gradlab_original = original
            self._done.append((owner, name, replacement))
            setattr(owner, name, replacement)

    def undo(self) -> None:
        """Put everything back, the newest first; under somebody else's patch a replacement stays, and does nothing."""
        with _lock:
            while self._done:
                owner, name, replacement = self._done[-1]
                original: Original = replacement.gradlab_original
                above = vars(owner).get(name)
                if above is replacement and original.is_inherited:
                    delattr(owner, name)
                elif above is replacement:
                    setattr(owner, name, original.call)
                else:  # a newer replacement stands on this one: from now on it calls what is below this one
                    while (newer := getattr(above, "gradlab_original", None)) and newer.call is not replacement:
                        above = newer.call
                    if newer is not None:
                        newer.call, newer.is_inherited = original.call, original.is_inherited
                self._done.pop()

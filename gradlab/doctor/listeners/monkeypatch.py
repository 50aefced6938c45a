"""Names of PyTorch's that are replaced for a while, and put back whatever happens; and what listens by them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from .event_log import EventLog

_lock = threading.RLock()  # two threads may begin or end a watch at once


@dataclass(slots=True)
class Below:
    """What a replacement stands for, and calls."""

    call: Any


class MonkeyPatches:
    """Replacements of attributes of modules and classes; ``undo`` takes them out, also from under newer ones."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Below], Any]) -> None:
        """Put ``make(below)`` in the place of ``owner.name``; a name that this PyTorch has not is left out.

        What ``make`` returns is a function that does its work by ``below.call(...)``.
        """
        with _lock:
            original = vars(owner).get(name) if owner is not None else None
            if original is None:
                return
            replacement = make(below := Below(original))
            replacement.gradlab_below = below
            self._done.append((owner, name, replacement))
            setattr(owner, name, replacement)

    def undo(self) -> None:
        """Put everything back, the newest first; under somebody else's patch a replacement stays, and does nothing."""
        with _lock:
            while self._done:
                owner, name, replacement = self._done[-1]
                original = replacement.gradlab_below.call
                above = vars(owner).get(name)
                if above is replacement:
                    setattr(owner, name, original)
                else:  # two watches that end in another order than they began in: the newer one calls what is below us
                    while (below := getattr(above, "gradlab_below", None)) and below.call is not replacement:
                        above = below.call
                    if below is not None:
                        below.call = original
                self._done.pop()


def never_raises(look: Callable[..., Any]) -> Callable[..., Any]:
    """Keep a failure of ours out of the learner's loop: for methods of what has a ``log``."""

    @wraps(look)
    def careful(self: Any, *args: Any, **kwargs: Any) -> Any:
        log: EventLog = self.log
        if log.failure:
            return None
        try:
            return look(self, *args, **kwargs)
        except Exception as error:
            return log.give_up(error)

    return careful


class Listener:
    """Replaces some of PyTorch's functions by ones that also write down what happens."""

    def __init__(self, log: EventLog) -> None:
        self.log = log

    def patch(self, patches: MonkeyPatches) -> None:
        """Put the replacements in."""

    def hooks(self) -> list[Any]:
        """Register hooks, where PyTorch has some; return the handles that remove them."""
        return []

    def after(self, look: Callable[[Any, Any], None], *, anywhere: bool = False) -> Callable[[Below], Any]:
        """Return what makes a method that does as before, and then calls ``look(its object, its result)``.

        What other threads than the watched one do counts only ``anywhere``.
        """

        def make(below: Below) -> Any:
            def call(owner: Any, *args: Any, **kwargs: Any) -> Any:
                result = below.call(owner, *args, **kwargs)
                if anywhere or self.log.is_watched_thread():
                    look(owner, result)
                return result

            return call

        return make

"""A listener replaces functions of PyTorch for a while, and a failure in it never reaches the learner's loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..._process import Original, Patches
from .event_log import EventLog


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

    def patch(self, patches: Patches) -> None:
        """Put the replacements in."""

    def hooks(self) -> list[Any]:
        """Register hooks, where PyTorch has some; return the handles that remove them."""
        return []

    def after(self, look: Callable[[Any, Any], None], *, anywhere: bool = False) -> Callable[[Original], Any]:
        """Return what makes a method that does as before, and then calls ``look(its object, its result)``.

        What other threads than the watched one do counts only ``anywhere``.
        """

        def make(original: Original) -> Any:
            def call(owner: Any, *args: Any, **kwargs: Any) -> Any:
                result = original.call(owner, *args, **kwargs)
                if anywhere or self.log.is_watched_thread():
                    look(owner, result)
                return result

            return call

        return make

"""Names of PyTorch's that are replaced for a while, and put back whatever happens; and what listens by them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..._process import Original, Patches
from ..events import Event
from .event_log import EventLog

Below = Original
MonkeyPatches = Patches


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
    """Replaces some of PyTorch's functions by ones that also write down what happens.

    One that is no part of the doctor's, given to ``watch.attach``, hears of each event at the moment when it happens.
    """

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

    def heard(self, event: Event) -> None:
        """Hear of an event, if attached to a watch; an error in here ends what the doctor does."""

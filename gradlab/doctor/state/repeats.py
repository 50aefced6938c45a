"""Updates that repeat the ones before, field by field: they tell the rules nothing new, and are only counted.

A healthy loop does the same thing thousands of times. Once it has done so for a while, its updates are kept back. When
anything else happens, the newest of them are told first, so that a rule always sees what came right before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import fields
from math import isfinite
from operator import attrgetter
from typing import Any

from ..events import Added, Backward, Clear, Clip, Event, Forward, ScalerStep, ScalerUpdate, Step, Unscale

_SETTLED = 64  # updates in a row that were each followed by the same one as the time before
_KEPT = 8  # the newest of those that are kept back, and the longest cycle of different updates
_MOST_KINDS = 64
_MOST_EVENTS = 256  # of one update
_REPEATABLE = (Added, Backward, Clear, Clip, Forward, ScalerStep, ScalerUpdate, Step, Unscale)
# Fields that differ in every update of a healthy loop. A new one belongs here, or no update is ever taken for a repeat.
_IGNORED = {"number", "previous", "backward", "loss"}
_FILLED_IN = {"nonzero", "added", "zeros", "used", "used_at", "wiped", "offered", "during", "groups", "refused"}


class RepeatFilter:
    """Hands events on, except for updates (all up to a step) in which everything is as it was the last time."""

    def __init__(
        self,
        tell: Callable[[list[Event]], None],
        skip: Callable[[list[list[Event]]], None],
        size: Callable[[], int],
    ) -> None:
        """Start with nothing seen.

        ``skip(updates)`` gets a cycle of updates that are not told, to keep counts right. ``size()`` says how much is
        inside the gradients, or -1 if every update is to be told.
        """
        self._tell, self._skip, self._state_size = tell, skip, size
        self._readers: dict[type[Any], Callable[[Any], Any]] = {kind: _reader(kind) for kind in _REPEATABLE}
        self._settled = False
        self._open: list[Event] = []  # of the update under way, while updates are kept back
        self._kept: deque[list[Event]] = deque()
        self._cycle = self._size = 0
        self._kind = self._last = 0  # of the update under way so far, and of the one before
        self._odd = False
        self._row = 0
        self._following: dict[int, int] = {}  # kind of an update -> kind of the one that came after it

    def take(self, events: list[Event]) -> None:
        """Take the next events."""
        told: list[Event] = []
        readers, kind, following = self._readers, self._kind, self._following
        for event in events:
            (self._open if self._settled else told).append(event)
            reader = readers.get(type(event))
            if reader is None or len(self._open) > _MOST_EVENTS:
                self._odd = True
                told += self._unsettle()
                continue
            try:
                kind = hash((kind, reader, reader(event)))
            except TypeError:  # lists of norms
                self._odd = True
            if type(event) is Backward and type(event.loss) is float and not isfinite(event.loss):
                self._odd = True
            if type(event) is not Step:
                continue
            if not self._odd and following.get(self._last) == kind:
                self._row += 1
            else:
                self._row = 0
                told += self._unsettle()
                if len(following) >= _MOST_KINDS:
                    following.clear()
                following[self._last] = kind
            self._last, kind, self._odd = kind, 0, False
            if self._settled:
                self._keep()
            elif self._row >= _SETTLED:
                self._tell(told)
                told = []
                self._settle()
        self._kind = kind
        self._tell(told)

    def _settle(self) -> None:
        """Begin to keep updates back if they go in a cycle after which the gradients hold as much as before it."""
        size = self._state_size()
        if self._cycle and size == self._size:
            self._settled = True
        elif not self._cycle and size >= 0 and 0 < (length := self._length()) <= _KEPT:
            self._cycle, self._size = length, size
            self._row -= length  # look again after one more cycle
        else:
            self._row = self._cycle = 0

    def _length(self) -> int:
        """Return how many updates come until this one comes again; 0 if it does not."""
        at = self._last
        for count in range(1, _MOST_KINDS):
            at = self._following.get(at, 0)
            if at == self._last:
                return count
        return 0

    def _keep(self) -> None:
        """Keep the update back that has just ended, and skip the oldest cycle when there are enough."""
        self._kept.append(self._open)
        self._open = []
        if len(self._kept) >= _KEPT + self._cycle:
            self._skip([self._kept.popleft() for _ in range(self._cycle)])

    def _unsettle(self) -> list[Event]:
        """Return what was kept back; from now on all is told."""
        waiting = [event for update in self._kept for event in update] + self._open
        self._kept.clear()
        self._open = []
        self._settled, self._cycle, self._row = False, 0, 0
        return waiting

    def release(self) -> None:
        """Tell what was kept back."""
        self._tell(self._unsettle())


def _reader(kind: type[Any]) -> Callable[[Any], Any]:
    return attrgetter(*(one.name for one in fields(kind) if one.name not in _IGNORED | _FILLED_IN))

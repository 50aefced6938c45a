"""A loop that repeats itself: once it has long done the same, what it does is compared with the time before, no more.

Then nothing is written down and nothing is judged, which makes watching cheap. As soon as anything differs, the newest
cycles of updates are written down after all, and so is what came since, before what differs.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import pairwise
from math import isfinite
from operator import attrgetter
from threading import get_ident
from typing import Any, Protocol

from ..events import Added, Backward, Clear, Clip, Event, Forward, Step
from ..frames import call_stack

_SETTLED = 64  # updates in a row that were each followed by the same one as the time before ...
_SETTLED_AGAIN = 12  # ... and for a loop that has been compared before, as between two validations
_LONGEST = 8  # updates of a cycle
_TOLD = 3  # cycles that are written down when something differs
_MOST_KINDS = 64
MOST_EVENTS = 256
"""Of an update; one with more is not taken for a repeat."""
_REPEATABLE = (Added, Backward, Clear, Clip, Forward, Step)
# Fields that differ in every update of a healthy loop, and those that GradState fills in. A new one belongs here, or no
# update is ever taken for a repeat.
_DIFFERS = {"number", "previous", "backward", "loss"}
_FILLED_IN = {"nonzero", "added", "zeros", "used", "used_at", "wiped", "offered", "during", "groups"}


class EventReader(Protocol):
    """What reads the events."""

    def take(self, events: list[Event]) -> None:
        """Take events, in order."""

    def repeated(self, events: list[Event], times: int) -> None:
        """Take it in that a cycle of updates came again so often."""

    def size(self) -> int:
        """Return how much is inside the gradients, or -1 if every update is to be told."""


class SteadyLoop:
    """Finds out that a loop repeats itself, and compares from then on."""

    def __init__(self, log: Any, judge: EventReader) -> None:
        """``log`` is the EventLog that has this."""
        self._log, self._judge = log, judge
        self.allowed = True
        self.update: list[Event] = []
        """The events of the update under way."""
        self._following: dict[int, int] = {}  # kind of an update -> kind of the one that came after it
        self._last = self._row = 0
        self._settled = _SETTLED
        self._stages: deque[Callable[[], bool]] = deque()
        self._forget()

    def _forget(self) -> None:
        self.active = self.on = False
        """Is it to be asked whether what happens is the same, and is all the same until now?"""
        self._row = self._length = self._size = self._at = self._cycles = 0
        self._stages.clear()
        self._marks: list[tuple[Any, ...]] = []  # what is done in a cycle, one after the other
        self._counts: list[int] = []  # how many events there were before each of them
        self._versions: dict[int, int] = {}  # place of a step among the marks -> sum of the gradients' versions then
        self._rises: dict[int, int] = {}  # ... and by how much it rises from cycle to cycle
        self._events: list[Event] = []  # of a cycle
        self._losses: dict[int, deque[float]] = {}  # place of a pass among the marks -> its newest losses

    def ended(self) -> None:
        """An update has ended, and its events are told: does the loop repeat itself?"""
        update, self.update = self.update, []
        kind = _kind(update)
        if not kind or self._following.get(self._last) != kind:
            self._forget()
            if len(self._following) >= _MOST_KINDS:
                self._following.clear()
            self._following[self._last] = kind
        self._last = kind
        self._row += 1
        if self._row < self._settled:
            return
        if not self._stages:
            self._length = self._cycle_length()
            self._stages.extend((self._measure, self._check_size, self._learn, self._begin))
            self._waits = 0
        self._events += update
        if self._waits:
            self._waits -= 1
        if not self._waits:
            self._waits = self._length
            if not self._length or not self._stages.popleft()():
                self._forget()

    def _cycle_length(self) -> int:
        """Return how many updates come until this one comes again; 0 if it does not, or if they are many."""
        at = self._last
        for count in range(1, _LONGEST + 1):
            at = self._following.get(at, 0)
            if at == self._last:
                return count
        return 0

    def _measure(self) -> bool:
        self._log.flush()
        self._size = self._judge.size()
        return self._size >= 0 and self.allowed and not self._log.hearers

    def _check_size(self) -> bool:
        """Go on if the gradients hold as much as before the cycle."""
        self._log.flush()
        self._events = []
        self.active = self._judge.size() == self._size
        return self.active

    def _learn(self) -> bool:
        """A cycle's marks are known: have another one, to see how its gradients' versions rise."""
        self._first = self._marks, self._versions
        self._marks, self._counts, self._versions, self._events = [], [], {}, []
        return True

    def _begin(self) -> bool:
        marks, versions = self._first
        inner = any(isinstance(event, Step) and event.backward for event in self._events)
        nested = any(one[0] == two[0] == "step" for one, two in pairwise(marks))
        if marks != self._marks or inner or nested:
            return False
        self._rises = {place: count - versions[place] for place, count in self._versions.items()}
        self._log.flush()
        self.on, self._settled = True, _SETTLED_AGAIN
        return True

    def same(self, *mark: Any, depth: int = 2, most: int = 2) -> bool:
        """Return whether the loop does what comes next in its cycle; if not, what it has done so far is told.

        mark: what is done; with a ``depth`` it counts, too, which code, that many frames above, does it, and for whom:
        ``most`` frames, PyTorch's own among them. What another thread does is never the same, and changes nothing.
        """
        if get_ident() != self._log.thread.ident:
            return False
        if depth:
            mark = *mark, call_stack(sys._getframe(depth), most)
        if self.on:
            if self._marks[self._at] == mark:
                self._at += 1
                return True
            self.leave()
        else:
            self._marks.append(mark)
            self._counts.append(len(self._events) + len(self.update))
        return False

    def same_loss(self, loss: Any, *mark: Any) -> bool:
        """Do the same for a backward pass, which is also told if its loss is not finite."""
        if type(loss) is not float or not isfinite(loss) or self._log.steps >= self._log.passes.most_updates:
            self.leave()
            return False
        if not self.same("backward", *mark, depth=5, most=6):
            return False
        self._losses.setdefault(self._at - 1, deque(maxlen=_TOLD + 1)).append(loss)
        self._log.passes.count += 1
        return True

    def same_step(self, *mark: Any) -> bool:
        """Do the same for a step, which is also told if something else has written to gradients."""
        at, versions = self._at if self.on else len(self._marks), self._log.index.grad_versions()
        if self.on and self._versions.get(at, versions) + self._rises.get(at, 0) != versions:
            self.leave()
            return False
        self._versions[at] = versions
        return self.same("step", *mark, depth=4, most=4)

    def stepped(self) -> bool:
        """Return whether the step that has ended was one of those that repeat."""
        if not self.same("stepped", depth=0):
            return False
        self._log.steps += 1
        if self._at == len(self._marks):
            self._at, self._cycles = 0, self._cycles + 1
        return True

    def leave(self) -> None:
        """Tell of the newest cycles, and of what was done since; from now on all is written down."""
        if not self.on:
            self._forget()
            return
        log, events, at, following = self._log, self._events, self._at, self._marks[self._at][0]
        told, begun = min(_TOLD, self._cycles), events[: self._counts[at]]
        losses = [[*self._losses[place]][-told - (place < at) :] for place in sorted(self._losses)]
        self._judge.repeated(events, self._cycles - told)
        self._forget()
        log.index.changes()  # taken as they are
        number = log.passes.count - _passes(begun) - told * _passes(events)
        for cycle in [*[events] * told, begun]:
            self._tell(cycle, number, losses)
            number += _passes(cycle)
        if following != "added":
            log.passes.current = None
        if following != "stepped":
            log.stepping.clear()

    def _tell(self, cycle: list[Event], number: int, losses: list[list[float]]) -> None:
        """Write the events of a cycle down, with the numbers after ``number`` and the oldest of the losses."""
        log, copies = self._log, dict[Backward, Backward]()
        for event in cycle:
            copy: Event
            if isinstance(event, Backward):
                copy = _copy(event, number + len(copies) + 1, losses[len(copies)].pop(0))
                copies[event] = log.passes.newest = log.passes.current = copy
            elif isinstance(event, Added):
                log.index.with_new_grad |= event.params
                copy = replace(event, backward=copies[event.backward], groups=())
            elif isinstance(event, Step):
                copy = replace(event)
                log.stepping[:] = [copy]
            else:
                copy = replace(event)
                if isinstance(event, Clear):
                    log.index.with_new_grad &= ~event.params
            log.emit(copy)


def _passes(events: list[Event]) -> int:
    return sum(isinstance(event, Backward) for event in events)


def _kind(update: list[Event]) -> int:
    """Return a number for all that an update does; 0 if it can't be told from others by it."""
    if len(update) >= MOST_EVENTS:
        return 0
    try:
        return hash(tuple([(reader := _READERS[type(event)], reader(event)) for event in update]))
    except (KeyError, TypeError):  # an event that is no repeat, such as a schedule's; lists of norms
        return 0


_READERS: dict[type[Any], Callable[[Any], Any]] = {
    kind: attrgetter(*(one.name for one in fields(kind) if one.name not in _DIFFERS | _FILLED_IN))
    for kind in _REPEATABLE
}


def _copy(event: Backward, number: int, loss: float) -> Backward:
    """Return a pass as it was before GradState has filled in what became of it."""
    copy = Backward(number, event.site)
    vars(copy).update({name: value for name, value in vars(event).items() if name not in _FILLED_IN})
    copy.number, copy.loss = number, loss
    return copy

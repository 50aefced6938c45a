"""The counts of a Ledger as plain numbers: bytes by category now, at the peak, and in each interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

CATEGORIES = ("weights", "optimizer", "inputs", "gradients", "activations", "other")
"""The categories of storages, the longest-lived first: parameters and buffers; optimizer state; batches; ``.grad``;
tensors saved for backward; and all other living storages, such as temporary results of a computation."""
WEIGHTS, OPTIMIZER, INPUTS, GRADIENTS, ACTIVATIONS, OTHER = range(len(CATEGORIES))

MOST_POINTS = 2000


@dataclass(frozen=True)
class MemoryPoint:
    """The bytes by category in one interval, during which one statement ran in one module."""

    statement: str
    """The statement that ran: its label in a Run, or its line of code in a ``Ledger``."""
    module: str
    """Dotted name of the innermost module that ran, forward or backward; "" outside any module."""
    bytes: dict[str, int]
    """Bytes alive at the end of the interval, by category."""
    high: dict[str, int]
    """Bytes by category at the moment of the interval's highest total, not the maximum of each category."""
    number: int = 0
    """Index of this execution of a statement, counted from 1, since the same line may run twice in a row."""

    @property
    def total(self) -> int:
        """Total bytes at the end of the interval."""
        return sum(self.bytes.values())

    @property
    def top(self) -> int:
        """The highest total during the interval, in bytes."""
        return sum(self.high.values())


def by_category_name(amounts: Sequence[int]) -> dict[str, int]:
    """Return a dict from the names in CATEGORIES to ``amounts``, which are in the same order."""
    return dict(zip(CATEGORIES, amounts, strict=True))


class Interval:
    """The mutable counts of one interval, during which one statement runs in one module."""

    __slots__ = ("began", "end", "end_moment", "high", "high_moment", "module", "number", "statement", "top")

    def __init__(self, site: tuple[str, str, int], now: list[int], moment: int) -> None:
        """Begin at ``moment`` with the bytes ``now``; ``site`` is (statement, module, index of execution)."""
        self.statement, self.module, self.number = site
        self.end = now.copy()
        self.high = now.copy()
        self.top = sum(now)
        self.began = self.end_moment = self.high_moment = moment

    def correct(self, history: list[tuple[int, int, int]], category: int) -> None:
        """Move the bytes of a storage with this ``history`` of (moment, category, bytes) to ``category``."""
        for amounts, moment in ((self.high, self.high_moment), (self.end, self.end_moment)):
            for since, before, size in reversed(history):
                if since <= moment:
                    amounts[before] -= size
                    amounts[category] += size
                    break


class CategoryTotals:
    """The bytes by category on one device, now and in past intervals."""

    def __init__(self, site: tuple[str, str, int] = ("", "", 1)) -> None:
        self.now = [0] * len(CATEGORIES)
        self.total = 0
        self._moment = 0
        self._paused = False
        self._interval = Interval(site, self.now, 0)
        self._past: list[Interval] = []
        self._peak_in = self._interval

    @property
    def peak(self) -> int:
        """The largest number of bytes alive at any one time."""
        return self._peak_in.top

    @property
    def peak_at(self) -> MemoryPoint:
        """The interval in which the total reached its peak."""
        return self._ended(self._peak_in)

    def points(self) -> list[MemoryPoint]:
        """Return a MemoryPoint for each interval up to now, the oldest first."""
        return [self._ended(interval) for interval in (*self._past, self._interval)]

    def change(self, category: int, size: int) -> int:
        """Add ``size`` bytes, negative or not, to ``category``, and return the number of changes so far."""
        self._moment = moment = self._moment + 1
        self.now[category] += size
        self.total += size
        if self.total > self._interval.top:
            interval = self._interval
            # This is one statement without a call, so that no garbage collection changes the totals in between.
            interval.high, interval.high_moment, interval.top = [*self.now], moment, self.total
            if interval.top > self._peak_in.top:
                self._peak_in = interval
        return moment

    def move(self, before: int, after: int, size: int) -> int:
        """Move ``size`` bytes from category ``before`` to ``after``, and return the number of changes so far."""
        self._moment += 1
        self.now[before] -= size
        self.now[after] += size
        return self._moment

    def correct(self, history: list[tuple[int, int, int]], category: int) -> None:
        """Move the storage whose changes are ``history`` to ``category``, both now and in all past intervals."""
        for interval in chain((self._interval,), reversed(self._past)):
            interval.correct(history, category)
            if interval.began < history[0][0]:
                break
        self.move(history[-1][1], category, history[-1][2])

    def begin_interval(self, site: tuple[str, str, int]) -> None:
        """Begin a new interval; ``site`` is (statement, module, index of the statement's execution)."""
        self._end()
        self._past.append(self._interval)
        self._interval = Interval(site, self.now, self._moment)
        if len(self._past) >= MOST_POINTS:
            self._thin()

    def label_statement(self, statement: str) -> None:
        """Label all intervals of the current statement with ``statement``."""
        self._interval.statement = statement
        for interval in reversed(self._past):
            if interval.number != self._interval.number:
                break
            interval.statement = statement

    def pause(self, *, paused: bool) -> None:
        """Pause or resume the timeline; while it is paused, freed bytes do not change the newest interval."""
        if paused and not self._paused:
            self._end()
        self._paused = paused

    def forget(self) -> None:
        """Restart the timeline and the peak with the bytes alive now."""
        self._past.clear()
        site = self._interval.statement, self._interval.module, self._interval.number
        self._interval = self._peak_in = Interval(site, self.now, self._moment)

    def _end(self) -> None:
        self._interval.end, self._interval.end_moment = [*self.now], self._moment

    def _ended(self, interval: Interval) -> MemoryPoint:
        if interval is self._interval and not self._paused:
            self._end()
        end, high = by_category_name(interval.end), by_category_name(interval.high)
        return MemoryPoint(interval.statement, interval.module, end, high, interval.number)

    def _thin(self) -> None:
        """Halve the number of past intervals: merge neighbours in pairs, and keep the higher peak of each pair."""
        thinned = []
        for first, second in zip(self._past[::2], self._past[1::2], strict=True):
            higher = first if first.top > second.top else second
            higher.end, higher.end_moment = second.end, second.end_moment
            if self._peak_in in (first, second):
                self._peak_in = higher
            thinned.append(higher)
        self._past = thinned

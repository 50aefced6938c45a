"""Tally: bytes by category on one device, as they are, at their peak, and stretch by stretch.

Numbers only: which storage is what, and when it lives and dies, is for others to say (see storages.py).
"""

from __future__ import annotations

from .timeline import CATEGORIES, MOST_POINTS, Point, named


class Stretch:
    """Work on one statement in one module, while it is being measured."""

    __slots__ = ("end", "high", "module", "number", "statement", "top", "when")

    def __init__(self, place: tuple[str, str, int], now: list[int], when: int) -> None:
        """Begin with what is alive ``now``; a place is statement, module and the number of the statement."""
        self.statement, self.module, self.number = place
        self.end = now.copy()
        self.high = now.copy()
        self.top = sum(now)
        self.when = when  # the number of the newest storage, at the highest moment

    def point(self) -> Point:
        """Return the stretch as it is shown."""
        return Point(self.statement, self.module, named(self.end), named(self.high), self.number)


class Tally:
    """Bytes by category on one device."""

    def __init__(self, place: tuple[str, str, int] = ("", "", 1)) -> None:
        """Start with nothing alive; a place is statement, module and the number of the statement."""
        self.now = [0] * len(CATEGORIES)
        self.total = 0
        self._resting = False
        self._newest = 0
        self._stretch = Stretch(place, self.now, 0)
        self._past: list[Stretch] = []
        self._peak = Stretch(place, self.now, 0)
        self._peak_in = self._stretch

    @property
    def peak(self) -> int:
        """The most bytes that were alive at one moment."""
        return self._peak.top

    @property
    def at_peak(self) -> dict[str, int]:
        """What was alive at that moment."""
        return named(self._peak.high)

    @property
    def peak_at(self) -> Point:
        """The stretch in which that moment came."""
        return self._ended(self._peak_in)

    def points(self) -> list[Point]:
        """Return all stretches up to now, oldest first."""
        return [self._ended(stretch) for stretch in (*self._past, self._stretch)]

    def add(self, category: int, size: int, number: int) -> None:
        """Count a storage that has just come to life; numbers rise with every storage."""
        self._newest = number
        self.change(category, size)

    def change(self, category: int, size: int) -> None:
        """Count bytes that came or, with a negative ``size``, went."""
        self.now[category] += size
        self.total += size
        if self.total > self._stretch.top:
            self._stretch.top, self._stretch.high, self._stretch.when = self.total, self.now.copy(), self._newest
            if self.total > self._peak.top:
                self._peak.top, self._peak.high, self._peak.when = self.total, self.now.copy(), self._newest
                self._peak_in = self._stretch

    def move(self, before: int, after: int, size: int, number: int | None = None) -> None:
        """Count bytes as something else from now on; with its ``number`` also at the highest moments before."""
        marks = [self.now]
        if number is not None:
            marks += [mark.high for mark in (self._stretch, self._peak) if number <= mark.when]
        for amounts in marks:
            amounts[before] -= size
            amounts[after] += size

    def turn(self, place: tuple[str, str, int]) -> None:
        """Begin another stretch at a place: statement, module and the number of the statement."""
        self._stretch.end = self.now.copy()
        self._past.append(self._stretch)
        self._stretch = Stretch(place, self.now, self._newest)
        if len(self._past) >= MOST_POINTS:
            self._thin()

    def say(self, statement: str) -> None:
        """Give the stretches of the statement under way its name."""
        self._stretch.statement = statement
        for stretch in reversed(self._past):
            if stretch.number != self._stretch.number:
                break
            stretch.statement = statement

    def rest(self, *, resting: bool) -> None:
        """Leave the timeline as it is while nobody counts: what dies then belongs to no statement."""
        if resting and not self._resting:
            self._stretch.end = self.now.copy()
        self._resting = resting

    def forget(self) -> None:
        """Begin the timeline and the peak anew with what is alive now."""
        self._past.clear()
        place = self._stretch.statement, self._stretch.module, self._stretch.number
        self._stretch = Stretch(place, self.now, self._newest)
        self._peak = Stretch(place, self.now, self._newest)
        self._peak_in = self._stretch

    def _ended(self, stretch: Stretch) -> Point:
        if stretch is self._stretch and not self._resting:
            stretch.end = self.now.copy()
        return stretch.point()

    def _thin(self) -> None:
        """Halve the number of stretches: neighbours become one, which keeps its highest moment."""
        kept = []
        for first, second in zip(self._past[::2], self._past[1::2], strict=True):
            higher = first if first.top > second.top else second
            higher.end = second.end
            if self._peak_in in (first, second):
                self._peak_in = higher
            kept.append(higher)
        self._past = kept

"""Growth: the lines and modules that made the bytes that stay from update to update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from .storages import Storages
from .timeline import CATEGORIES, CategoryTotals

UPDATE, CALL = "update", "call"
_RANK = {"": 0, CALL: 1, UPDATE: 2}
_MIN_SNAPSHOTS = 3
_NODES = "Nodes of autograd's graph are not storages and are not counted: a graph can grow without a row here."

_Line = tuple[str, int]
_Snapshot = dict[tuple[CategoryTotals, _Line, str, int], tuple[int, int]]


@dataclass(frozen=True)
class GrowthRow:
    """The storages made by one line in one module that stay."""

    bytes: int
    """Bytes by which they have grown from update ``first`` to update ``last``."""
    line: str
    """The innermost line of your own code, as "train.py:12: kept.append(x * 2)"; "" if it is not known."""
    module: str
    """Dotted name of the module at work; "" outside of any."""
    category: str
    """One of the categories of the ``Ledger``."""


@dataclass(frozen=True)
class Growth:
    """The growth between two updates, in bytes; ``rows`` are sorted, the largest first."""

    rows: tuple[GrowthRow, ...]
    first: int
    """The number of the update at whose end the growth begins, counted from 1; 0 if too few have ended."""
    last: int
    """The number of the update at whose end it was measured."""
    unit: str
    """Either "update", which ends with ``clock``, or "call" of a model, which begins there, if no optimizer steps."""
    clock: str
    """The line that ends each update or begins each call, such as "train.py:12: optimizer.step()"."""

    @property
    def bytes(self) -> int:
        """All bytes that have grown between the two updates."""
        return sum(row.bytes for row in self.rows)

    @property
    def bytes_per_update(self) -> float:
        """Bytes an update, or a call."""
        return self.bytes / max(1, self.last - self.first)

    def __repr__(self) -> str:
        if not self.first:
            return f"Growth: not known before {_MIN_SNAPSHOTS} updates, or calls of a model, have run. {_NODES}"
        unit, between = self.unit, self.last - self.first
        when = f"from {unit} {self.first} to {unit} {self.last} ({'end' if unit == UPDATE else 'begin'}: {self.clock})"
        if not self.rows:
            return f"Growth: none {when}. {_NODES}"
        sites = (" in ".join(filter(None, (row.line, row.module))) for row in self.rows)
        rows = (
            f"\n  {r.category:12}{r.bytes / between:>16,.0f}  {site}" for r, site in zip(self.rows, sites, strict=True)
        )
        return f"Growth: {self.bytes_per_update:,.0f} bytes for each {unit}, {when}{''.join(rows)}\n  {_NODES}"


class GrowthTracker:
    """Takes snapshots of the storages that have stayed, at the ends of updates 1, 2, 3, 4, 6, 9, 13 and so on.

    The distances grow, so that snapshots cost little over many updates. The last three
    snapshots are kept.
    """

    def __init__(self, storages: Storages) -> None:
        self._storages = storages
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._runs: Counter[tuple[str, _Line]] = Counter()
        self._begin(("", ("", 0)))

    def _begin(self, clock: tuple[str, _Line]) -> None:
        self._clock, self._start = clock, self._runs[clock] - 1
        self._due = self._runs[clock]
        self._ends = 0, 0  # numbers of the newest storages at the end of the update before last, and of the last
        self._snapshots: list[tuple[int, _Snapshot]] = []

    def tick(self, unit: str, line: _Line) -> None:
        """Note that a line has ended an update; the most frequent such line defines the updates.

        With several optimizers only one ends the update. Where none steps, as in an evaluation, calls of a model do.
        """
        clock, current = (unit, line), self._clock
        self._runs[clock] += 1
        run = self._runs[clock]
        if clock != current:
            if (_RANK[unit], run) <= (_RANK[current[0]], self._runs[current]):
                return
            self._begin(clock)
        (before, end), newest = self._ends, self._storages.newest
        self._ends = end, newest
        self._storages.settle_outputs(before, end)
        if run == self._due:
            self._due += max(1, (run - self._start) // 2)
            self._snapshots = [*self._snapshots[1 - _MIN_SNAPSHOTS :], (run, self._snapshot(end))]

    def _snapshot(self, newest: int) -> _Snapshot:
        """Return number and bytes of the storages from before the end of the previous update, by group."""
        groups: _Snapshot = {}
        for entry in self._storages.alive():
            if entry.number > newest:
                break
            group = entry.totals, entry.line, entry.module, entry.category
            count, size = groups.get(group, (0, 0))
            groups[group] = count + 1, size + entry.bytes
        return groups

    def growth(self, totals: CategoryTotals, describe: Callable[[str, int], str]) -> Growth:
        """Compare the snapshots; ``describe(file, number)`` returns a line as text."""
        unit, clock = self._clock[0], describe(*self._clock[1])
        if len(self._snapshots) < _MIN_SNAPSHOTS:
            return Growth((), 0, 0, unit, clock)
        (_, earlier), (first, before), (last, after) = self._snapshots
        rows = []
        for group, (count, size) in after.items():
            count_before, size_before = before.get(group, (0, 0))
            rising = earlier.get(group, (0, 0))[0] < count_before < count
            if group[0] is totals and rising and size > size_before:
                _, line, module, category = group
                rows.append(GrowthRow(size - size_before, describe(*line), module, CATEGORIES[category]))
        return Growth(tuple(sorted(rows, key=lambda row: -row.bytes)), first, last, unit, clock)

"""The growth of memory from update to update, by the line of code and the module that allocated the memory."""

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
    """The growth, in one category, of the memory that one line allocated in one module."""

    bytes: int
    """Growth in bytes from update ``first`` to update ``last`` of the ``Growth``."""
    line: str
    """The innermost line of the user's code, as "train.py:12: kept.append(x * 2)"; "" if it is unknown."""
    module: str
    """Dotted name of the module that ran, or the class name of the model itself; "" outside any module."""
    category: str
    """Name of the category, one of ``CATEGORIES``."""


@dataclass(frozen=True)
class Growth:
    """The growth of memory from one update (or call to a model) to a later one, in ``rows`` sorted from the largest."""

    rows: tuple[GrowthRow, ...]
    first: int
    """The update, or call, from which growth is measured, counted from 1; 0 if too few updates have run."""
    last: int
    """The update, or call, up to which growth is measured; 0 if too few updates have run."""
    unit: str
    """The unit of growth: "update" or, if no optimizer steps, "call" of a model; "" before the first."""
    clock: str
    """The line that ends each update or begins each call, as "train.py:12: optimizer.step()"; "" before the first."""

    @property
    def bytes(self) -> int:
        """Total growth from ``first`` to ``last``, in bytes."""
        return sum(row.bytes for row in self.rows)

    @property
    def bytes_per_update(self) -> float:
        """Mean growth in bytes per ``unit``, which is an update or a call to a model."""
        return self.bytes / max(1, self.last - self.first)

    def __repr__(self) -> str:
        if not self.first:
            return f"Growth: needs at least {_MIN_SNAPSHOTS} updates, or calls to a model. {_NODES}"
        unit, between, verb = self.unit, self.last - self.first, "ends" if self.unit == UPDATE else "begins"
        when = f"from {unit} {self.first} to {unit} {self.last} (each {unit} {verb} at {self.clock})"
        if not self.rows:
            return f"Growth: none {when}. {_NODES}"
        sites = ((row, " in ".join(filter(None, (row.line, row.module)))) for row in self.rows)
        rows = (f"\n  {row.category:12}{row.bytes / between:>16,.0f}  {site}" for row, site in sites)
        return f"Growth: {self.bytes_per_update:,.0f} bytes for each {unit}, {when}{''.join(rows)}\n  {_NODES}"


class GrowthTracker:
    """Takes snapshots of memory after the updates listed in ``Ledger.growth``, and compares the newest three."""

    def __init__(self, storages: Storages) -> None:
        self._storages = storages
        self.forget()

    def forget(self) -> None:
        """Discard all snapshots and all counts of updates and calls."""
        self._runs: Counter[tuple[str, _Line]] = Counter()
        self._begin(("", ("", 0)))

    def _begin(self, clock: tuple[str, _Line]) -> None:
        self._clock, self._start = clock, self._runs[clock] - 1
        self._due = self._runs[clock]
        self._ends = 0, 0  # numbers of the newest storages at the last two ticks of the clock, the older tick first
        self._snapshots: list[tuple[int, _Snapshot]] = []

    def tick(self, unit: str, line: _Line) -> None:
        """Count a tick of ``line``, which has ended an update or begun a call to a model, as ``unit`` says.

        The line with the most ticks is the clock, which times snapshots; it is a call only if no optimizer steps.
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
        """Return the number and bytes of storages numbered up to ``newest``, by device, line, module and category."""
        groups: _Snapshot = {}
        for entry in self._storages.alive():
            if entry.number > newest:
                break
            group = entry.totals, entry.line, entry.module, entry.category
            count, size = groups.get(group, (0, 0))
            groups[group] = count + 1, size + entry.bytes
        return groups

    def growth(self, totals: CategoryTotals, describe: Callable[[str, int], str]) -> Growth:
        """Return the growth in ``totals`` between the two newest snapshots, or an empty Growth before the third one."""
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

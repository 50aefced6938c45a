"""What a run writes: one row an update, in columns of bounded size.

A million updates must not need a million rows, and thinning out would lie about a loss that swings: every 32nd value of
a swing of period 20 is another swing. So rows are gathered in buckets of 1, 2, 4, ... updates which keep the mean, the
lowest and the highest loss.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence

MOST_ROWS = 1024
_MOST_SWITCHES = 64


class BoundedTable:
    """A table of numbers with at most ``MOST_ROWS`` rows; when it is full, neighbours are merged in pairs."""

    def __init__(self, rules: Mapping[str, Callable[[Sequence[float]], float]]) -> None:
        """Make empty columns; each has a rule that turns the values of one bucket into one."""
        self._rules = dict(rules)
        self._columns = {name: array("d") for name in self._rules}
        self._waiting: list[tuple[float, ...]] = []
        self.stride = 1  # updates a bucket

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, name: str) -> array[float]:
        return self._columns[name]

    def append(self, **values: float) -> None:
        """Add one row, a value for each column by its name; it shows once its bucket is full."""
        if values.keys() != self._columns.keys():
            raise ValueError(f"a row must have the columns {', '.join(self._columns)}, got {', '.join(values)}")
        if self.stride == 1:
            for name, column in self._columns.items():
                column.append(values[name])
        else:
            self._waiting.append(tuple(values[name] for name in self._columns))
            if len(self._waiting) < self.stride:
                return
            for (name, rule), bucket in zip(self._rules.items(), zip(*self._waiting, strict=True), strict=True):
                self._columns[name].append(rule(bucket))
            self._waiting.clear()
        if len(self) >= MOST_ROWS:
            self._halve()

    def _halve(self) -> None:
        for name, rule in self._rules.items():
            old = self._columns[name]
            self._columns[name] = array("d", [rule(old[i : i + 2]) for i in range(0, len(old), 2)])
        self.stride *= 2


def _first(values: Sequence[float]) -> float:
    return values[0]


def _last(values: Sequence[float]) -> float:
    return values[-1]


def _over_finite(rule: Callable[[list[float]], float]) -> Callable[[Sequence[float]], float]:
    def of_finite(values: Sequence[float]) -> float:
        finite = [value for value in values if math.isfinite(value)]
        return rule(finite) if finite else math.nan

    return of_finite


def _mean(values: Sequence[float]) -> float:
    return sum(value / len(values) for value in values)  # divided first: two losses of 1e308 must not become inf


class History:
    """The history of one run since its last reset."""

    def __init__(self) -> None:
        """Start empty."""
        mean, low, high = _over_finite(_mean), _over_finite(min), _over_finite(max)
        self.rows = BoundedTable(
            {
                "update": _first,  # 1, 2, 3, ...: the first update of the bucket
                "loss": mean,  # mean over the micro-batches of the update, never divided or scaled
                "low": low,
                "high": high,
                "norm": mean,  # of .grad as the step used it, after unscaling and clipping; NaN where it was not taken
                "scale": _last,  # the loss scale during the update; NaN without a scaler
                "underflow": mean,  # share of gradient elements that fp16 could not hold unscaled; NaN unless fp16
                "skipped": sum,  # updates whose step the scaler skipped
            }
        )
        self.path = BoundedTable({"x": _last, "y": _last})  # the weights of a model that has two of them
        self.updates = 0  # made so far; the newest may still wait to be written
        self.loss = math.nan
        self.norm = math.nan
        self.skipped: list[int] = []  # the newest updates whose step was skipped ...
        self.skips = 0  # ... and how many there were in all
        self.switches: list[tuple[int, str]] = []
        self.broken: int | None = None

    def write(
        self, update: int, loss: float | None, norm: float, scale: float, underflow: float, *, skipped: bool
    ) -> None:
        """Write the row of one update, counted from 1; the loss is None if nothing went backward in it."""
        if loss is None:  # a second step on the same gradient: the loss is the one before
            loss = self.loss
        elif not math.isfinite(loss) and self.broken is None:
            self.broken = update
        self.loss, self.norm = loss, norm
        if skipped:
            self.skips += 1
            self.skipped = [*self.skipped[-_MOST_SWITCHES:], update]
        self.rows.append(
            update=update,
            loss=loss,
            low=loss,
            high=loss,
            norm=norm,
            scale=scale,
            underflow=underflow,
            skipped=float(skipped),
        )

    def mark_switch(self, words: str) -> None:
        """Mark this moment; switches at the same update share a mark."""
        if self.switches and self.switches[-1][0] == self.updates:
            words = f"{self.switches.pop()[1]}, {words}"
        self.switches = [*self.switches[-_MOST_SWITCHES:], (self.updates, words)]

"""What each step found in ``.grad``, kept in a bounded number of columns however long a training is."""

from __future__ import annotations

from collections.abc import Callable

from ...scenes import BatchHistory
from ..state.grad_groups import StepFacts

_MOST_COLUMNS = 200


class _Columns:
    """The steps of one optimizer: fresh, stale and lost batches, summed over ``width`` steps."""

    def __init__(self) -> None:
        self.width = 1
        self.steps = 0
        self.sums: list[tuple[int, int, int]] = []

    def add(self, counts: tuple[int, int, int]) -> None:
        if self.steps % self.width:
            self.sums[-1] = _plus(self.sums[-1], counts)
        else:
            if len(self.sums) >= _MOST_COLUMNS:
                self.width *= 2
                self.sums = [_plus(one, two) for one, two in zip(self.sums[::2], self.sums[1::2], strict=True)]
            self.sums.append(counts)
        self.steps += 1

    def means(self, which: int) -> tuple[float, ...]:
        last = self.steps - self.width * (len(self.sums) - 1)
        widths = [self.width] * (len(self.sums) - 1) + [last]
        return tuple(one[which] / width for one, width in zip(self.sums, widths, strict=True))


class StepHistory:
    """Counts what is inside ``.grad`` at every step; it finds nothing."""

    def __init__(self) -> None:
        self._columns: dict[int, _Columns] = {}

    def step(self, facts: StepFacts) -> None:
        """Count the batches of a step."""
        fresh = {one.number for one in facts.fresh}
        stale = {held.backward.number for held in facts.held} - fresh
        forgotten = max((group.forgotten for group in facts.groups), default=0)
        lost = {one.number for cleared in facts.since.clearings for one in cleared.lost if not one.used} - fresh
        columns = self._columns.setdefault(facts.step.optimizer, _Columns())
        columns.add((len(fresh), len(stale) + forgotten, len(lost)))

    def read(self, name: Callable[[int], str]) -> list[BatchHistory]:
        """Return what is known of each optimizer, called by its name."""
        return [
            BatchHistory(name(at), one.steps, one.width, one.means(0), one.means(1), one.means(2))
            for at, one in sorted(self._columns.items())
        ]


def _plus(one: tuple[int, int, int], two: tuple[int, int, int]) -> tuple[int, int, int]:
    return one[0] + two[0], one[1] + two[1], one[2] + two[2]

"""The loss of examples that no batch contains, measured after each update and kept in bounded size."""

from __future__ import annotations

import math
from typing import Any

from ..loop import History, Run, UnswitchedRun
from .evaluate import evaluating
from .kinds import Curve

_MOST_WAITING = 64  # losses left on the device; reading one off a GPU makes the CPU wait


class HeldOutLoss:
    """Measures a run's loss on the held-out examples of its task, from the moment it is made."""

    def __init__(self, run: Run | UnswitchedRun) -> None:
        """Measure after each update of ``run`` from now on; its task must have held-out examples."""
        if run.task.held_out is None:
            raise ValueError(f"HeldOutLoss: task must have held-out examples, got {run.task.name!r}")
        self._run = run
        self._x, self._y = (part.to(run.task.device) for part in run.task.held_out)
        self._begin()
        run.after_update = self._measure

    def curve(self) -> Curve:
        """Return what was measured as a scene, on a linear axis."""
        if self._run.updates < self._last:  # the run began again, and has made no update since
            self._begin()
        self._write()
        rows, record = self._history.rows, self._run.record
        return Curve(
            rows["update"],
            rows["loss"],
            rows["low"],
            rows["high"],
            tuple(record.switches),
            self._history.broken,
            self._history.loss,
            title="held-out loss",
            linear=True,
        )

    def _begin(self) -> None:
        self._history = History()
        self._waiting: list[tuple[int, Any]] = []
        self._last = 0

    def _measure(self) -> None:
        if self._run.updates <= self._last:
            self._begin()
        self._last = self._run.updates
        model = self._run.model
        with evaluating(model):
            self._waiting.append((self._last, self._run.task.loss_fn(model(self._x), self._y)))
        if len(self._waiting) >= _MOST_WAITING:
            self._write()

    def _write(self) -> None:
        for update, loss in self._waiting:
            self._history.write(update, float(loss), math.nan, math.nan, math.nan, skipped=False)
        self._waiting.clear()

"""The history of a run: one row per update, or per bucket of updates in a long run, so that its size is bounded.

A million updates must not need a million rows, and sampling would misrepresent a loss that oscillates: every 32nd
value of an oscillation with period 20 shows a different oscillation. So a row covers a bucket of 1, 2, 4, ...
updates, and contains the mean, the lowest and the highest loss.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter

import torch
from torch import Tensor

from .. import _torch

MOST_ROWS = 1024
_MOST_SWITCHES = 64
_FLUSH_EVERY = 64
_FP16_VANISHES = 2.0**-25  # largest magnitude that fp16 rounds to 0: half of the smallest positive number in fp16


class BoundedTable:
    """A table of at most ``MOST_ROWS`` rows. When it is full, ``rules``, one per column, merge the rows in pairs."""

    def __init__(self, rules: Mapping[str, Callable[[Sequence[float]], float]]) -> None:
        self._rules = dict(rules)
        self._columns = {name: array("d") for name in self._rules}
        self._waiting: list[tuple[float, ...]] = []
        self.stride = 1  # updates per bucket

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, name: str) -> array[float]:
        return self._columns[name]

    def append(self, *values: float) -> None:
        """Add one value per column, in the order of ``rules``. The values of ``stride`` calls are merged into a row."""
        self._waiting.append(values)
        if len(self._waiting) < self.stride:
            return
        for (name, rule), bucket in zip(self._rules.items(), zip(*self._waiting, strict=True), strict=True):
            self._columns[name].append(rule(bucket) if self.stride > 1 else bucket[0])
        self._waiting.clear()
        if len(self) >= MOST_ROWS:
            for name, rule in self._rules.items():
                old = self._columns[name]
                self._columns[name] = array("d", [rule(old[i : i + 2]) for i in range(0, len(old), 2)])
            self.stride *= 2


def _over_finite(rule: Callable[[list[float]], float]) -> Callable[[Sequence[float]], float]:
    def of_finite(values: Sequence[float]) -> float:
        finite = [value for value in values if math.isfinite(value)]
        return rule(finite) if finite else math.nan

    return of_finite


def _mean(values: Sequence[float]) -> float:
    return sum(value / len(values) for value in values)  # the sum of two losses of 1e308 would overflow


class History:
    """The history of one run since its last reset."""

    def __init__(self, is_two_weights: bool = False) -> None:
        self.is_two_weights = is_two_weights  # whether the model has two weights, so that its loss can be drawn
        mean, low, high = _over_finite(_mean), _over_finite(min), _over_finite(max)
        self.rows = BoundedTable(
            {
                "update": itemgetter(0),  # first update of the bucket, counted from 1
                "loss": mean,  # mean loss of the update's micro-batches, before any division or scaling
                "low": low,
                "high": high,
                "norm": mean,  # norm of the .grad that the step used, unscaled and clipped, or NaN if not measured
                "scale": itemgetter(-1),  # the loss scale during the update, or NaN without a scaler
                "underflow": mean,  # share of nonzero gradients that would be 0 in fp16, or NaN without a scaler
                "skipped": sum,  # number of updates whose step the scaler skipped
            }
        )
        self.path = BoundedTable({"x": itemgetter(-1), "y": itemgetter(-1)})  # the weights of a model with two weights
        self.updates = 0  # number of completed updates, of which the newest may not be in ``rows`` yet
        self.loss = self.norm = math.nan
        self.skipped: list[int] = []  # numbers of the newest updates whose step was skipped
        self.skips = 0  # total number of updates whose step was skipped
        self.switches: list[tuple[int, str]] = []  # changes of the loop, as (number of updates before, label)
        self.broken: int | None = None  # number of the first update whose loss was inf or NaN, or None

    def write(
        self, update: int, loss: float | None, norm: float, scale: float, underflow: float, *, skipped: bool
    ) -> None:
        """Record update number ``update``, counted from 1; ``loss`` is None if this update had no backward pass."""
        if loss is None:  # a second step on the same gradient has no loss, so the previous loss is repeated
            loss = self.loss
        elif not math.isfinite(loss) and self.broken is None:
            self.broken = update
        self.loss, self.norm = loss, norm
        if skipped:
            self.skips += 1
            self.skipped = [*self.skipped[-_MOST_SWITCHES:], update]
        self.rows.append(update, loss, loss, loss, norm, scale, underflow, float(skipped))

    def mark_switch(self, label: str) -> None:
        """Record a change of the loop after the current update; changes after the same update get a common label."""
        if self.switches and self.switches[-1][0] == self.updates:
            label = f"{self.switches.pop()[1]}, {label}"
        self.switches = [*self.switches[-_MOST_SWITCHES:], (self.updates, label)]


class HistoryWriter:
    """Writes updates of a model with ``params`` to the History ``record``; their numbers begin at ``updates`` + 1."""

    def __init__(self, params: Iterable[Tensor] = (), *, updates: int = 0) -> None:
        self._params = list(params)
        count = sum(map(Tensor.numel, self._params))
        self.record = History(count == 2 and not any(param.is_complex() for param in self._params))
        self._norms: list[Tensor] = []
        self._rows: list[tuple[list[Tensor], list[Tensor], float, Tensor | None, bool]] = []
        self._written = updates
        self._note_path()

    def before_step(self, grads: list[Tensor]) -> None:
        """Record the norms of the gradients that a step is about to use."""
        self._norms = list(_torch.foreach_norm(grads)) if grads else []

    def updated(self, losses: list[Tensor], scale: float | None, skipped: bool) -> None:
        """Record an update by its micro-batches' losses, its loss scale or None, and whether its step was skipped."""
        underflow = None if scale is None else self._underflow()
        self._rows.append((losses, self._norms, math.nan if scale is None else scale, underflow, skipped))
        self._norms = []
        self.record.updates += 1
        self._note_path()
        if len(self._rows) >= _FLUSH_EVERY:
            self.flush()

    def flush(self) -> None:
        """Write all pending updates to ``record``, after waiting for the device."""
        for losses, norms, scale, underflow, skipped in self._rows:
            self._written += 1
            values = _floats(losses)
            loss = sum(value / len(values) for value in values) if values else None
            norm = math.hypot(*_floats(norms)) if norms else math.nan
            share = math.nan if underflow is None else float(underflow)
            self.record.write(self._written, loss, norm, scale, share, skipped=skipped)
        self._rows.clear()

    def _note_path(self) -> None:
        if self.record.is_two_weights:
            x, y = (value for param in self._params for value in param.detach().flatten().tolist())
            self.record.path.append(x, y)

    def _underflow(self) -> Tensor:
        sizes = [param.grad.detach().to_dense().abs() for param in self._params if param.grad is not None]
        if not sizes:
            return torch.tensor(0.0)
        limits = (_FP16_VANISHES, 0.0)
        representable, nonzero = (torch.stack([(size > limit).sum() for size in sizes]).sum() for limit in limits)
        return (nonzero - representable) / nonzero.clamp(min=1)


def _floats(tensors: list[Tensor]) -> list[float]:
    if len(tensors) > 1 and tensors[0].is_cuda:  # copy all values from the GPU at once
        return torch.stack([tensor.float() for tensor in tensors]).tolist()
    return [tensor.item() for tensor in tensors]

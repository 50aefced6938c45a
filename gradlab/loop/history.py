"""The history of a run: one row an update, in columns of bounded size.

A million updates must not need a million rows, and sampling would misrepresent a loss that oscillates: every 32nd
value of an oscillation of period 20 is another oscillation. So rows are merged into buckets of 1, 2, 4, ... updates
with the mean, the lowest and the highest loss.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from .. import _torch

MOST_ROWS = 1024
_MOST_SWITCHES = 64


class BoundedTable:
    """A table of at most ``MOST_ROWS`` rows; when it is full, neighbours are merged in pairs, by each column's rule."""

    def __init__(self, rules: Mapping[str, Callable[[Sequence[float]], float]]) -> None:
        self._rules = dict(rules)
        self._columns = {name: array("d") for name in self._rules}
        self._waiting: list[tuple[float, ...]] = []
        self.stride = 1  # updates a bucket

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, name: str) -> array[float]:
        return self._columns[name]

    def append(self, *values: float) -> None:
        """Add one row, a value for each column in their order; it shows once its bucket is full."""
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
    return sum(value / len(values) for value in values)  # divided first, so that two losses of 1e308 do not overflow


class History:
    """The history of one run since its last reset."""

    def __init__(self, is_two_weights: bool = False) -> None:
        """Start empty; ``is_two_weights`` says that the model has two numbers, whose loss can be drawn as contours."""
        self.is_two_weights = is_two_weights
        mean, low, high = _over_finite(_mean), _over_finite(min), _over_finite(max)
        self.rows = BoundedTable(
            {
                "update": itemgetter(0),  # 1, 2, 3, ...: the first update of the bucket
                "loss": mean,  # mean over the micro-batches of the update, never divided or scaled
                "low": low,
                "high": high,
                "norm": mean,  # of .grad as the step used it, after unscaling and clipping; NaN where it was not taken
                "scale": itemgetter(-1),  # the loss scale during the update; NaN without a scaler
                "underflow": mean,  # share of the gradient's non-zeros that fp16 could not hold; NaN unless fp16
                "skipped": sum,  # updates whose step the scaler skipped
            }
        )
        self.path = BoundedTable({"x": itemgetter(-1), "y": itemgetter(-1)})  # the weights of a model with two of them
        self.updates = 0  # made so far; the newest may still wait to be written
        self.loss = math.nan
        self.norm = math.nan
        self.skipped: list[int] = []  # the newest updates whose step was skipped ...
        self.skips = 0  # ... and the number of all
        self.switches: list[tuple[int, str]] = []
        self.broken: int | None = None

    def write(
        self, update: int, loss: float | None, norm: float, scale: float, underflow: float, *, skipped: bool
    ) -> None:
        """Write the row of one update, counted from 1; the loss is None if no backward ran in it."""
        if loss is None:  # a second step on the same gradient: the previous loss
            loss = self.loss
        elif not math.isfinite(loss) and self.broken is None:
            self.broken = update
        self.loss, self.norm = loss, norm
        if skipped:
            self.skips += 1
            self.skipped = [*self.skipped[-_MOST_SWITCHES:], update]
        self.rows.append(update, loss, loss, loss, norm, scale, underflow, float(skipped))

    def mark_switch(self, label: str) -> None:
        """Mark a switch at this update; switches at the same update share a mark."""
        if self.switches and self.switches[-1][0] == self.updates:
            label = f"{self.switches.pop()[1]}, {label}"
        self.switches = [*self.switches[-_MOST_SWITCHES:], (self.updates, label)]


_FLUSH_EVERY = 64
_FP16_VANISHES = 2.0**-25  # magnitudes up to this round to zero in fp16, whose smallest number is 2**-24 (IEEE 754)


class HistoryWriter:
    """Writes the history of one run after some updates; with parameters also norms and path."""

    def __init__(self, params: Iterable[Tensor] = (), *, updates: int = 0) -> None:
        self._params = list(params)
        count = sum(map(Tensor.numel, self._params))
        self.record = History(count == 2 and not any(param.is_complex() for param in self._params))
        self._norms: list[Tensor] = []
        self._rows: list[tuple[list[Tensor], list[Tensor], float, Tensor | None, bool]] = []
        self._written = updates
        self._note_path()

    def before_step(self, grads: list[Tensor]) -> None:
        """Note the norms of the gradients that a step is about to use."""
        self._norms = list(_torch.foreach_norm(grads)) if grads else []

    def updated(self, losses: list[Tensor], scale: float | None, skipped: bool) -> None:
        """Note one update: the losses of its micro-batches, and the loss scale, None without one."""
        underflow = None if scale is None else self._underflow()
        self._rows.append((losses, self._norms, math.nan if scale is None else scale, underflow, skipped))
        self._norms = []
        self.record.updates += 1
        self._note_path()
        if len(self._rows) >= _FLUSH_EVERY:
            self.flush()

    def flush(self) -> None:
        """Write all pending rows; this waits for the device."""
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
        """Return the share of the (unscaled) gradient's non-zero elements that would be zero in fp16."""
        sizes = [param.grad.detach().to_dense().abs() for param in self._params if param.grad is not None]
        if not sizes:
            return torch.tensor(0.0)
        limits = (_FP16_VANISHES, 0.0)
        representable, nonzero = (torch.stack([(size > limit).sum() for size in sizes]).sum() for limit in limits)
        return (nonzero - representable) / nonzero.clamp(min=1)


def _floats(tensors: list[Tensor]) -> list[float]:
    if len(tensors) > 1 and tensors[0].is_cuda:  # one transfer for all
        gathered: Any = torch.stack([tensor.float() for tensor in tensors]).tolist()
        return list(gathered)
    return [tensor.item() for tensor in tensors]

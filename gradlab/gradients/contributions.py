"""The batches that each parameter's ``.grad`` contains, numbered by backward pass, and their contributions.

If a model is small, the newest contributions are kept as they were added, and norms show how ``.grad`` was scaled later
(by clipping or a GradScaler's ``unscale_``). If it is larger, only squared lengths and a dot product are kept, which
suffice to compare the newest contribution with the sum of the older contributions.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import TensorWeakRef

from .. import _torch

Span = tuple[int, int]
"""The first and the last number of a run of consecutive batches, both inclusive, counted from 1."""
_MOST_SPANS = 64
_MOST_RHYTHMS = 64
_NO_STEP_YET = 2**62  # value of ``window`` in a Rhythm that no step has ended yet
MOST_KEPT = 32
"""Maximum number of kept contributions, twice the longest window of a Recipe; older contributions form one part."""
Times = Callable[[int], int]
"""A function of a batch's number that returns the number of steps that have applied the batch."""
_MOST_BYTES = 16 * 2**20
_FEWEST_KEPT = 8  # smallest number of contributions worth keeping; if fewer fit in _MOST_BYTES, none are kept
_ROUNDING_OF_RATIO = 1e-5
_ROUNDING = 1e-4  # longest remainder that counts as a rounding error, as a fraction of the sum of all lengths


def union(spans: Iterable[Span]) -> list[Span]:
    """Return ``spans`` in ascending order, with overlapping and adjacent spans merged."""
    merged: list[Span] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def within(number: int, spans: Iterable[Span]) -> bool:
    """Return whether the batch ``number`` is in any of the ``spans``."""
    return any(first <= number <= last for first, last in spans)


class GradEvent(Enum):
    """The kinds of events that a ParameterHistory records about a ``.grad``, each as a pair (kind, value)."""

    ADDED = auto()
    """A backward pass added to ``.grad``; the value is the number of the pass."""
    WRITTEN = auto()
    """Other code wrote to ``.grad`` or set it to None; the value is the new 1-norm as a tensor, or 0.0 for None."""
    STEPPED = auto()
    """An optimizer step used ``.grad``; the value is the number of the step."""


class Rhythm(NamedTuple):
    """Consecutive batches from ``first`` on, with ``steps`` steps before and a step after every ``window`` batches."""

    first: int
    steps: int
    window: int

    def steps_before(self, number: int) -> int:
        """Return the number of steps taken before the batch ``number``, which must belong to this rhythm."""
        return self.steps + (number - self.first) // self.window


class ParameterHistory:
    """The recorded events of one parameter's ``.grad``, and the state that ``sync`` derives from these events.

    A history has no strong reference to the parameter or to ``.grad``, so the loop can free the memory of both.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.batches: list[Span] = []
        self.steps = 0  # number of steps taken while .grad contained batches
        self.rhythms: list[Rhythm] = []  # from these, ``times_applied`` computes the steps before a batch
        self.reused: tuple[int, Span] | None = None  # newest step that applied batches again, and their span
        self.events: list[tuple[GradEvent, Any]] = []
        self.last_grad_ref: TensorWeakRef | None = None  # the .grad that ``remember`` recorded
        self.version = -1  # version number of the .grad that ``remember`` recorded
        self.had_grad = False  # whether .grad was a tensor when it was last checked for changes
        # The result of ``_sums_of`` for the gradient that the current pass adds and .grad, or None if not measured.
        self.incoming: Tensor | None = None
        self.was_added = False  # whether the newest contribution was added to an existing .grad
        self.newest: Tensor | None = None  # value of ``incoming`` for the newest contribution

    def changed(self, grad: Tensor) -> bool:
        """Return whether ``.grad`` has been written to or replaced since the last call to ``remember``."""
        return self.last_grad_ref is None or grad._version != self.version or self.last_grad_ref() is not grad

    def remember(self, grad: Tensor) -> None:
        """Record the current ``.grad`` by a weak reference and its version number, for ``changed``."""
        if self.last_grad_ref is None or self.last_grad_ref() is not grad:
            self.last_grad_ref = TensorWeakRef(grad)
        self.version = grad._version

    def sync(self) -> None:
        """Apply the pending events to ``batches``, ``rhythms``, ``steps`` and ``reused``."""
        for kind, value in self.events:
            if kind is GradEvent.ADDED:
                self._add(value)
            elif kind is GradEvent.WRITTEN and not float(value):
                self.batches.clear()  # a norm of exactly 0 means that .grad contains no batch
                self.rhythms.clear()
            elif kind is GradEvent.STEPPED and self.batches:
                if again := self.applied():
                    self.reused = (value, (again[0][0], again[-1][1]))
                self.steps += 1
        self.events.clear()

    def times_applied(self, number: int) -> int:
        """Return the number of steps that have applied the batch ``number``, which must be in ``.grad``."""
        rhythm = next(rhythm for rhythm in reversed(self.rhythms) if rhythm.first <= number)
        return self.steps - rhythm.steps_before(number)

    def applied(self, least: int = 1) -> list[Span]:
        """Return the batches in ``.grad`` that at least ``least`` steps have applied, which are always the oldest."""
        newest, until = self.steps - least, self.batches[-1][1] if self.batches else 0
        for rhythm in reversed(self.rhythms):
            if rhythm.steps <= newest:
                last = min(rhythm.first + rhythm.window * (newest - rhythm.steps + 1) - 1, until)
                return [(first, min(end, last)) for first, end in self.batches if first <= last]
            until = rhythm.first - 1
        return []

    def take(self, other: ParameterHistory) -> None:
        """Copy the state of ``other``, a synced history; drop pending events and the reference to ``.grad``."""
        self.batches, self.reused = list(other.batches), other.reused
        self.steps, self.rhythms = other.steps, list(other.rhythms)
        self.events, self.last_grad_ref = [], None

    def copy(self) -> ParameterHistory:
        """Apply the pending events, and return a copy that does not refer to ``.grad``."""
        self.sync()
        copy = ParameterHistory(self.name)
        copy.take(self)
        return copy

    def _add(self, number: int) -> None:
        self._note_steps(number)
        if self.batches and self.batches[-1][1] == number - 1:
            self.batches[-1] = (self.batches[-1][0], number)
            return
        self.batches.append((number, number))
        if len(self.batches) > _MOST_SPANS:  # merge the two oldest spans, although there is a gap between them
            self.batches[:2] = [(self.batches[0][0], self.batches[1][1])]

    def _note_steps(self, number: int) -> None:
        """Record how many steps came before the new batch ``number``, unless the newest Rhythm implies this number."""
        if self.rhythms:
            rhythm = self.rhythms[-1]
            if rhythm.steps_before(number) == self.steps:
                return
            if rhythm.window == _NO_STEP_YET and self.steps == rhythm.steps + 1:
                self.rhythms[-1] = rhythm._replace(window=number - rhythm.first)
                return
        self.rhythms.append(Rhythm(number, self.steps, _NO_STEP_YET))
        if len(self.rhythms) > _MOST_RHYTHMS:  # numbers of steps stay exact for the oldest and the newest batches
            del self.rhythms[1]


@dataclass(frozen=True)
class GradContents:
    """The batches that the ``.grad`` of all parameters together contain, and the norm over all elements."""

    is_none: bool  # every .grad is None
    holds: list[Span]
    applied: list[Span]  # the part of ``holds`` that at least one step has applied
    reused: list[Span]  # the part of ``holds`` that at least two steps have applied
    norm: float


@dataclass(frozen=True)
class Contribution:
    """The contribution of one backward pass, or of several older passes together, to the current ``.grad``."""

    batches: Span | None  # numbers of the backward passes, or None for values that other code wrote to ``.grad``
    applied: tuple[int, int]  # smallest and largest number of steps that have applied one of ``batches``
    share: float
    """Projection onto the sum of all parts, divided by the sum's length; it can be negative. Shares add up to 1."""
    along: float  # projection onto the sum of all parts, in units of the gradient
    length: float  # norm over all elements of all parameters, in units of the gradient


@dataclass(frozen=True)
class Contributions:
    """The contributions whose sum is the ``.grad`` of all parameters, oldest first, and the norm of that sum."""

    parts: tuple[Contribution, ...]
    norm: float  # norm of the sum of all parts, that is, of ``.grad``
    vectors: Tensor | None = field(default=None, compare=False, repr=False)
    """One row for each of ``parts``, over all elements of all parameters, or None if contributions are not kept."""


@dataclass(frozen=True)
class Vectors:
    """The ``.grad`` of all parameters as the vector ``total``, and ``rows``, which add up to it, one for each span."""

    spans: tuple[Span | None, ...]
    rows: Tensor
    total: Tensor


def number_to_keep(elements: int, element_size: int = 4) -> int:
    """Return the number of contributions to keep for a model of ``elements`` elements, or 0 if there are too many."""
    count = min(MOST_KEPT, _MOST_BYTES // (element_size * max(elements, 1)))
    return count if count >= _FEWEST_KEPT else 0


class _Change(NamedTuple):
    upto: int  # number of the newest backward pass when the norms were measured
    norms: list[Tensor]  # 1-norms of every .grad at that time and just after pass ``upto``, then the 2-norms of both


class KeptContributions:
    """The newest contributions to the ``.grad`` of ``params``; only the method ``vectors`` waits for the device.

    A ring buffer stores each contribution unchanged, in a row. Clipping or ``unscale_`` may multiply ``.grad`` later.
    So if other code has changed ``.grad``, the next backward pass measures the norms before and after the change.
    """

    def __init__(self, params: Sequence[Tensor], most: int, begun: int) -> None:
        self._params = params
        self._begun = self._newest = begun
        reals = [plain(param) for param in params]  # a complex element becomes two real elements
        self._sizes = [real.numel() for real in reals]
        # There is one row more than ``most``, because the current pass may not add to ``.grad`` after all.
        self._ring = torch.zeros(most + 1, sum(self._sizes), dtype=reals[0].dtype, device=reals[0].device)
        self._rows = [
            [part.view(real.shape) for part, real in zip(row.split(self._sizes), reals, strict=True)]
            for row in self._ring
        ]
        self._under_way = 0  # index of the row in ``_ring`` for the current pass
        self._before = self._grads()  # elements of every .grad before the current pass
        self._changes: deque[_Change] = deque(maxlen=most)

    def begin(self, newest: int, *, changed: bool) -> None:
        """Prepare for the pass after ``newest``; ``changed`` is False if no other code has written to a ``.grad``."""
        if not changed:
            if newest != self._newest:
                self._before += self._ring[self._under_way]
        elif any(param.grad is not None for param in self._params):
            grads = self._grads()
            self._changes.append(self._change(newest, grads))
            self._before = grads
        else:
            self._before.zero_()
        self._newest, self._under_way = newest, (newest + 1) % len(self._ring)
        self._ring[self._under_way].zero_()

    def take(self, index: int, grad: Tensor) -> None:
        """Store ``grad``, which the current pass adds to the ``.grad`` of the parameter at ``index``."""
        self._rows[self._under_way][index].copy_(grad)

    def vectors(self, inside: Sequence[Sequence[Span]], newest: int) -> Vectors:
        """Return the contributions after pass ``newest`` as Vectors; ``inside`` lists the batches in each ``.grad``."""
        grads = self._grads()
        first = max(newest - len(self._ring) + 2, self._begun + 1)
        holds = union(chain(*inside))
        numbers = [n for begin, end in holds for n in range(max(begin, first), end + 1)]
        every_row = self._ring.new_empty(len(numbers) + 1, self._ring.shape[1])  # first row: older batches
        indices = torch.tensor([n % len(self._ring) for n in numbers], dtype=torch.long, device=every_row.device)
        torch.index_select(self._ring, 0, indices, out=every_row[1:])
        every_row = every_row.float()
        rows = every_row[1:]
        if factors := self._factors(inside, numbers, self._change(newest, grads)) if numbers else []:
            sizes = torch.tensor(self._sizes, device=rows.device)
            rows *= rows.new_tensor(factors).repeat_interleave(sizes, dim=1)
        spans: list[Span | None] = list(zip(numbers, numbers, strict=True))
        total = grads.float()
        rest = total - rows.sum(0)
        rounding = max(_ROUNDING, 4 * torch.finfo(grads.dtype).eps)
        if float(rest.norm()) > rounding * (float(rows.norm(dim=1).sum()) + float(total.norm())):
            oldest = holds[0][0] if holds else newest + 1
            before = (numbers[0] if numbers else newest + 1) - 1
            spans.insert(0, (oldest, before) if oldest <= before else None)
            every_row[0] = rest
            rows = every_row
        return Vectors(tuple(spans), rows, total)

    def put_back(self, saved: Vectors) -> None:
        """Restore contributions from ``saved``, a result of ``vectors()``; restore every ``.grad`` before the call."""
        for span, row in zip(saved.spans, saved.rows, strict=True):
            if span is not None and span[0] == span[1]:
                self._ring[span[0] % len(self._ring)] = row
                self._begun = min(self._begun, span[0] - 1)

    def _grads(self) -> Tensor:
        grads = [
            self._ring.new_zeros(size) if param.grad is None else plain(param.grad).flatten()
            for param, size in zip(self._params, self._sizes, strict=True)
        ]
        return torch.cat(grads).to(self._ring)

    def _change(self, newest: int, grads: Tensor) -> _Change:
        before = self._before if newest == self._newest else self._before + self._ring[self._under_way]
        vectors = [*grads.split(self._sizes), *before.split(self._sizes)]
        return _Change(newest, [norm for order in (1, 2) for norm in _torch.foreach_norm(vectors, order)])

    def _factors(self, inside: Sequence[Sequence[Span]], numbers: Sequence[int], now: _Change) -> list[list[float]]:
        """Return, for each contribution, its factor in each ``.grad`` (0: not contained), or [] if all are 1."""
        changes = [change for change in (*self._changes, now) if change.upto >= numbers[0]]
        norms = torch.stack([norm for change in changes for norm in change.norms]).view(len(changes), 2, 2, -1)
        scaled, also = (norms[:, :, 0] / norms[:, :, 1]).unbind(1)
        # Scaling changes both norms by the same factor; other changes, such as added noise, do not. A ratio of norms
        # is NaN or infinite if .grad was 0, and 1 up to rounding if .grad has not been scaled.
        is_scaling = (scaled - also).abs() <= max(1e-3, 8 * torch.finfo(norms.dtype).eps) * scaled
        scaled = scaled.where(is_scaling & ((scaled - 1).abs() > _ROUNDING_OF_RATIO) & scaled.isfinite(), 1.0)
        ratios = scaled.tolist()
        if set(chain.from_iterable(ratios)) == {1.0} and all(spans == inside[0] for spans in inside):
            return []
        products = torch.tensor(ratios, dtype=torch.double).flip(0).cumprod(0).flip(0).tolist()
        upto = [change.upto for change in changes]
        factors = []
        for number in numbers:
            since = products[bisect_left(upto, number)]
            factors.append([f if within(number, spans) else 0.0 for f, spans in zip(since, inside, strict=True)])
        return factors


def measure_parts(vectors: Vectors, times: Times, scale: float = 1.0) -> Contributions:
    """Return Contributions with the length and projection of each part, divided by the loss scale ``scale``."""
    spans, rows, norm = vectors.spans, vectors.rows, float(vectors.total.norm())
    if not spans or not norm or not math.isfinite(norm):
        measures = [(math.nan, math.nan)] * (len(spans) if norm else 0)
    else:
        along, lengths = rows @ (vectors.total / norm), rows.norm(dim=1)
        measures = list(zip(along.tolist(), lengths.tolist(), strict=True))
    return make_contributions(spans, measures, times, norm, scale, rows)


def newest_and_older(holds: Span, times: Times, sums: tuple[float, float, float], norm: float) -> Contributions:
    """Return Contributions for all older batches in ``holds`` and for the newest; ``norm`` is the norm of ``.grad``.

    ``sums`` is (|c|^2, c . p, |p|^2), where c is the newest contribution, and p is ``.grad`` just before c was added.
    """
    oldest, newest = holds
    spans = [(oldest, newest - 1), (newest, newest)]
    squared, dot, before = sums
    whole = squared + 2 * dot + before
    if not whole or not math.isfinite(whole):
        return make_contributions(spans, [(math.nan, math.nan)] * 2, times, norm)
    share = (squared + dot) / whole
    lengths = (norm * math.sqrt(max(part, 0.0) / abs(whole)) for part in (before, squared))
    measures = list(zip(((1 - share) * norm, share * norm), lengths, strict=True))
    return make_contributions(spans, measures, times, norm)


def make_contributions(
    spans: Sequence[Span | None],
    measures: Sequence[tuple[float, float]],
    times: Times,
    norm: float,
    scale: float = 1.0,
    rows: Tensor | None = None,
) -> Contributions:
    """Return Contributions with ``measures``, (along, length) for each span, and ``norm``, all divided by ``scale``."""
    parts = []
    for span, (along, length) in zip(spans, measures, strict=False):
        applied = (times(span[1]), times(span[0])) if span else (0, 0)
        parts.append(Contribution(span, applied, along / norm, along / scale, length / scale))
    return Contributions(tuple(parts), norm / scale, rows if scale == 1.0 or rows is None else rows / scale)


def plain(grad: Tensor) -> Tensor:
    """Return ``grad`` as a dense, real tensor, detached from the graph that ``create_graph=True`` creates."""
    grad = grad.detach()
    grad = grad if grad.layout is torch.strided else grad.to_dense()
    return torch.view_as_real(grad.resolve_conj()) if grad.is_complex() else grad

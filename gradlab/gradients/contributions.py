"""How much each batch contributed to what ``.grad`` holds, measured.

Of a small model the newest contributions are kept as they came, and what happened to ``.grad`` since (clipping, the
scaler's ``unscale_``) is kept beside them as ratios of norms. Of a larger model only dot products are kept, which tell
the newest contribution from all the older ones together.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from .. import _torch
from .spans import Span, union, within

MOST_KEPT = 64
"""Contributions that are kept at most; what is older is told as one."""
_MOST_BYTES = 16 * 2**20
_FEWEST_KEPT = 8  # with room for fewer, two parts are told
_SAME = 1e-5  # of a norm: a change that is smaller comes from rounding
_ROUNDING = 1e-4  # of the lengths of all contributions: a rest that is shorter comes from rounding


@dataclass(frozen=True)
class Contribution:
    """What one backward, or several older ones together, contributed to ``.grad`` as it is now.

    ``along`` and ``across`` are its place in the plane of the sum and the newest contribution, in units of the
    gradient: along the sum, and at a right angle to it on the newest one's side. All ``across`` add up to 0.
    """

    batches: Span | None
    """The numbers of the backwards; None for what was written into ``.grad`` by anything but a backward."""
    stale: bool
    """True for a leftover: a step had applied it before the newest backward came."""
    share: float
    """Its projection on the sum, as a part of the sum: negative where it points the other way. All add up to 1."""
    along: float
    across: float
    length: float
    """Its norm, in units of the gradient."""


@dataclass(frozen=True)
class Contributions:
    """The parts of ``.grad`` over all parameters, the oldest first, and the norm of their sum; no parts without any."""

    parts: tuple[Contribution, ...]
    norm: float
    """The length of the sum, ``.grad`` itself."""
    vectors: Tensor | None = field(default=None, compare=False, repr=False)
    """The parts in full, a row for each of ``parts`` over all elements of all parameters, if they were asked for."""

    @property
    def fresh(self) -> float:
        """Share of the sum that belongs to the update under way: 1 minus that of the leftovers."""
        return sum(part.share for part in self.parts if not part.stale)


@dataclass(frozen=True)
class Vectors:
    """The parts of ``.grad`` as vectors over all elements of all parameters: a row for each of ``spans``.

    The rows lie in several tensors, ``pieces``, one after the other: they are large, and reading them must not copy
    them. ``total`` is ``.grad`` itself, the sum of the rows up to rounding; ``lengths`` are the norms of the rows.
    """

    spans: tuple[Span | None, ...]
    pieces: tuple[Tensor, ...]
    lengths: Tensor
    total: Tensor

    def dot(self, vector: Tensor) -> Tensor:
        """Return the dot product of each row with a vector."""
        return torch.cat([piece @ vector for piece in self.pieces]) if self.pieces else vector.new_zeros(0)

    def row(self, at: int) -> Tensor:
        """Return one row."""
        for piece in self.pieces:
            if at < piece.shape[0]:
                return piece[at]
            at -= piece.shape[0]
        raise IndexError(at)


def number_to_keep(elements: int, element_size: int = 4) -> int:
    """Return the number of contributions to keep of a model of so many elements; 0 where two parts must do."""
    count = min(MOST_KEPT, _MOST_BYTES // (element_size * max(elements, 1)))
    return count if count >= _FEWEST_KEPT else 0


class _Change(NamedTuple):
    upto: int  # the newest backward when .grad was looked at
    norms: Tensor  # 1-norm of each .grad then, and after these of each as that backward had left it


class KeptContributions:
    """The newest contributions to the ``.grad`` of some parameters; only ``vectors`` waits for the device.

    They are the rows of a ring, as they came. ``.grad`` may have been multiplied since, by clipping or by the scaler's
    ``unscale_``. So before each backward, a ``.grad`` that was written to is compared with what it held before.
    """

    def __init__(self, params: Sequence[Tensor], most: int, begun: int) -> None:
        """Keep those after the backward ``begun``, ``most`` of them at most."""
        self._params = params
        self._begun = self._newest = begun
        self._sizes = [param.numel() for param in params]
        # One row more than is told: the row of the pass under way may turn out to be no contribution.
        self._ring = torch.zeros(most + 1, sum(self._sizes), dtype=params[0].dtype, device=params[0].device)
        self._rows = [
            [part.view(param.shape) for part, param in zip(row.split(self._sizes), params, strict=True)]
            for row in self._ring
        ]
        self._lengths = torch.zeros(most + 1, device=params[0].device)  # of the rows, up to the backward ``_measured``
        self._measured = begun
        self._under_way = 0  # the row of the pass under way
        self._held = self._grads()  # before that pass
        self._changes: deque[_Change] = deque(maxlen=most)

    def begin(self, newest: int, *, changed: bool) -> None:
        """A backward pass is about to add to ``.grad``, in which ``newest`` is the newest so far.

        ``changed`` says whether anything but that backward may have written into it since.
        """
        if not changed:
            if newest != self._newest:
                self._held += self._ring[self._under_way]
        elif any(param.grad is not None for param in self._params):
            grads = self._grads()
            self._changes.append(self._change(newest, grads))
            self._held = grads
        else:
            self._held.zero_()
        self._newest, self._under_way = newest, (newest + 1) % len(self._ring)
        self._ring[self._under_way].zero_()

    def take(self, index: int, grad: Tensor) -> None:
        """Keep what comes in for a parameter."""
        self._rows[self._under_way][index].copy_(grad)

    def vectors(self, inside: Sequence[Sequence[Span]], newest: int) -> Vectors:
        """Return what ``.grad`` holds; ``inside`` are the batches of each parameter, ``newest`` the newest backward.

        The rows are those of the ring wherever nothing has scaled them: they are to be read before the next backward.
        """
        grads = self._grads()
        total = grads.float()
        numbers, pieces, lengths = self._inside(inside, newest, grads)
        spans: list[Span | None] = [(n, n) for n in numbers]
        rest = total.clone()
        for piece in pieces:
            rest -= piece.sum(0)
        rounding = max(_ROUNDING, 4 * torch.finfo(grads.dtype).eps)
        length = rest.norm()
        if float(length) > rounding * (float(lengths.sum()) + float(total.norm())):
            oldest = min((spans[0][0] for spans in inside if spans), default=newest + 1)
            before = (numbers[0] if numbers else newest + 1) - 1
            spans.insert(0, (oldest, before) if oldest <= before else None)
            pieces, lengths = [rest[None], *pieces], torch.cat([length[None], lengths])
        return Vectors(tuple(spans), tuple(pieces), lengths, total)

    def copy(self, inside: Sequence[Sequence[Span]], newest: int) -> tuple[list[int], list[Tensor]]:
        """Return the backwards and the rows of what ``.grad`` holds, for ``restore``."""
        numbers, pieces, _ = self._inside(inside, newest, self._grads())
        return numbers, [row.clone() for piece in pieces for row in piece]

    def restore(self, saved: tuple[list[int], list[Tensor]], newest: int) -> None:
        """Go back to the moment of ``copy``, after every ``.grad`` has been put back."""
        numbers, rows = saved
        for number, row in zip(numbers, rows, strict=True):
            self._ring[number % len(self._ring)] = row
        self._begun = self._measured = numbers[0] - 1 if numbers else newest
        self._changes.clear()
        self._held = self._grads()
        self._newest, self._under_way = newest, (newest + 1) % len(self._ring)
        self._ring[self._under_way].zero_()

    def _inside(
        self, inside: Sequence[Sequence[Span]], newest: int, grads: Tensor
    ) -> tuple[list[int], list[Tensor], Tensor]:
        """Return the backwards that are kept of those inside, their rows as they are in ``.grad``, and their norms."""
        first = max(newest - len(self._ring) + 2, self._begun + 1)
        numbers = [n for begin, end in union(chain(*inside)) for n in range(max(begin, first), end + 1)]
        pieces = self._pieces(numbers)
        factors = self._factors(inside, numbers, self._change(newest, grads)) if numbers else None
        if factors is None:
            return numbers, pieces, self._row_lengths(numbers, newest)
        sizes = torch.tensor(self._sizes)
        counts = [piece.shape[0] for piece in pieces]
        pieces = [
            piece * factor.to(piece).repeat_interleave(sizes.to(piece.device), dim=1)
            for piece, factor in zip(pieces, factors.split(counts), strict=True)
        ]
        return numbers, pieces, torch.cat([torch.linalg.vector_norm(piece, dim=1) for piece in pieces])

    def _row_lengths(self, numbers: Sequence[int], newest: int) -> Tensor:
        """Return the norms of rows as they came; each is taken once, when it is first asked for."""
        rows = len(self._rows)
        first = max(self._measured, newest - rows) + 1
        for number in range(first, newest + 1):
            self._lengths[number % rows] = self._ring[number % rows].float().norm()
        self._measured = newest
        return self._lengths[[n % rows for n in numbers]]

    def _pieces(self, numbers: Sequence[int]) -> list[Tensor]:
        """Return the rows of these backwards as slices of the ring, which are no copies."""
        places = [n % len(self._ring) for n in numbers]
        cuts = [at for at in range(1, len(places)) if places[at] != places[at - 1] + 1]
        ends = zip([0, *cuts], [*cuts, len(places)], strict=True) if places else ()
        return [self._ring[places[begin] : places[end - 1] + 1].float() for begin, end in ends]

    def _grads(self) -> Tensor:
        """Return every ``.grad`` as one vector, zeros for None."""
        grads = [p.new_zeros(p.numel()) if p.grad is None else plain(p.grad).flatten() for p in self._params]
        return torch.cat(grads).to(self._ring)

    def _change(self, newest: int, grads: Tensor) -> _Change:
        """Compare what every ``.grad`` holds with what the newest backward left in it."""
        held = self._held if newest == self._newest else self._held + self._ring[self._under_way]
        norms = torch.stack(_torch.foreach_norm([*grads.split(self._sizes), *held.split(self._sizes)], 1))
        return _Change(newest, norms)

    def _factors(self, inside: Sequence[Sequence[Span]], numbers: Sequence[int], now: _Change) -> Tensor | None:
        """Return what each contribution (a row) has been multiplied by in each parameter; 0 where it is not inside.

        None stands for nothing but ones.
        """
        changes = [change for change in (*self._changes, now) if change.upto >= numbers[0]]
        after, before = torch.stack([change.norms for change in changes]).cpu().double().chunk(2, dim=1)
        ratios = after / before
        # A ratio is 1 where nothing was scaled, up to rounding, and where there was nothing to scale.
        ratios[~torch.isfinite(ratios) | ((ratios - 1).abs() <= _SAME)] = 1.0
        every = torch.tensor(numbers)
        held = torch.ones(len(numbers), len(inside), dtype=torch.bool)
        if any(spans != inside[0] for spans in inside):
            for parameter, spans in enumerate(inside):
                held[:, parameter] = torch.tensor([within(number, spans) for number in numbers])
        if bool((ratios == 1.0).all()) and bool(held.all()):
            return None
        products = ratios.flip(0).cumprod(0).flip(0)
        since = torch.searchsorted(torch.tensor([change.upto for change in changes]), every)
        return torch.where(held, products[since], 0.0)


def lay_in_plane(
    vectors: Vectors, stale: Sequence[bool], scale: float = 1.0, *, in_full: bool = False
) -> Contributions:
    """Lay parts into the plane of their sum and the newest of them; ``scale`` is what ``.grad`` is multiplied by."""
    norm = float(vectors.total.norm())
    known = list(zip(vectors.spans, stale, strict=True))
    if not known or not norm or not math.isfinite(norm):
        places = [(math.nan, math.nan)] * (len(known) if norm else 0)
        return _told(known, places, norm, scale, vectors, in_full=in_full)
    unit = vectors.total / norm
    along = vectors.dot(unit)

    def beside(at: int) -> Tensor:
        return vectors.row(at) - along[at] * unit

    # The newest one spans the plane, unless it lies on the sum: then the one that lies farthest from it does.
    newest = len(known) - 1
    aside = beside(newest)
    length = float(aside.norm())
    if not length > 1e-5 * norm:
        aside = beside(int((vectors.lengths.square() - along.square()).argmax()))
        length = float(aside.norm())
    across = torch.zeros_like(along)
    if length > 1e-5 * norm:
        aside = aside - (aside @ unit) * unit  # what is left of the sum in it comes from rounding
        across = vectors.dot(aside / aside.norm())
    places = list(zip(along.tolist(), across.tolist(), strict=True))
    return _told(known, places, norm, scale, vectors, in_full=in_full)


def two_parts(older: Span, newest: int, stale: bool, sums: tuple[float, float, float], norm: float) -> Contributions:
    """Tell the newest contribution from all the older ones together.

    ``sums`` were taken as it came: its squared length, its dot product with ``.grad`` before it, and the squared length
    of that; ``norm`` is that of ``.grad`` now, which may have been clipped or unscaled since.
    """
    own, dot, before = sums
    whole = own + 2 * dot + before
    if not whole or not math.isfinite(whole):
        return _told([(older, stale), ((newest, newest), False)], [(math.nan, math.nan)] * 2, norm, 1.0)
    share = (own + dot) / whole
    aside = norm * math.sqrt(max(own / whole - share**2, 0.0))
    places = [((1 - share) * norm, -aside), (share * norm, aside)]
    return _told([(older, stale), ((newest, newest), False)], places, norm, 1.0)


def _told(
    known: Sequence[tuple[Span | None, bool]],
    places: Sequence[tuple[float, float]],
    norm: float,
    scale: float,
    vectors: Vectors | None = None,
    *,
    in_full: bool = False,
) -> Contributions:
    lengths = [math.hypot(*place) for place in places] if vectors is None else vectors.lengths.tolist()
    parts = (
        Contribution(span, stale, along / norm, along / scale, across / scale, length / scale)
        for (span, stale), (along, across), length in zip(known, places, lengths, strict=False)
    )
    full = torch.cat(vectors.pieces) / scale if in_full and vectors is not None and places else None
    return Contributions(tuple(parts), norm / scale, full)


def plain(grad: Tensor) -> Tensor:
    """Return a gradient dense, and without the graph that ``create_graph=True`` leaves on it."""
    grad = grad.detach()
    return grad if grad.layout is torch.strided else grad.to_dense()

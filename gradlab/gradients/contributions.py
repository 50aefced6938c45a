"""How much each batch contributed to what ``.grad`` holds, measured.

Of a small model the newest contributions are kept as they came, and what happened to ``.grad`` since (clipping, the
scaler's ``unscale_``) is kept beside them as ratios of norms. Of a larger model only dot products are kept, which tell
the newest contribution from all the older ones together.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from .. import _torch
from .spans import Span, within

MOST_KEPT = 64
"""Contributions that are kept at most; what is older is told as one."""
_MOST_BYTES = 16 * 2**20
_FEWEST_KEPT = 8  # with room for fewer, two parts are told
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


@dataclass(frozen=True)
class Contributions:
    """The parts of ``.grad`` over all parameters, the oldest first, and the norm of their sum; no parts without any."""

    parts: tuple[Contribution, ...]
    norm: float

    @property
    def fresh(self) -> float:
        """Share of the sum that belongs to the update under way: 1 minus that of the leftovers."""
        return sum(part.share for part in self.parts if not part.stale)


@dataclass(frozen=True)
class Vectors:
    """The parts of ``.grad`` as vectors over all elements of all parameters: a row of ``rows`` for each of ``spans``.

    ``total`` is ``.grad`` itself, the sum of the rows up to rounding.
    """

    spans: tuple[Span | None, ...]
    rows: Tensor
    total: Tensor


def number_to_keep(elements: int) -> int:
    """Return the number of contributions to keep of a model of so many elements; 0 where two parts must do."""
    count = min(MOST_KEPT, _MOST_BYTES // (4 * max(elements, 1)))
    return count if count >= _FEWEST_KEPT else 0


class KeptContributions:
    """The newest contributions to the ``.grad`` of some parameters; only ``vectors`` waits for the device."""

    def __init__(self, params: Sequence[Tensor], most: int, begun: int) -> None:
        """Keep those after the backward ``begun``, so many at most."""
        sizes = [param.numel() for param in params]
        self._begun, self._params = begun, params
        # One row more than is told: the row of the pass under way may turn out to be no contribution.
        self._ring = torch.zeros(most + 1, sum(sizes), device=params[0].device if params else "cpu")
        self._rows = [
            [part.view(param.shape) for part, param in zip(row.split(sizes), params, strict=True)] for row in self._ring
        ]
        self._under_way = 0  # the row of the pass under way
        self._none = self._ring.new_zeros(())
        self._norms = [self._none] * len(params)  # 1-norm of each .grad when it was looked at last
        self._ratios: deque[tuple[int, Tensor]] = deque(maxlen=most)  # (up to which backward, how .grad was scaled)

    def begin(self, newest: int) -> None:
        """A backward pass is about to add to ``.grad``, in which ``newest`` is the newest so far."""
        norms = self._look()
        self._ratios.append((newest, torch.stack(norms) / torch.stack(self._norms)))
        self._norms = norms
        self._under_way = (newest + 1) % len(self._ring)
        self._ring[self._under_way].zero_()

    def take(self, index: int, grad: Tensor) -> None:
        """Keep what comes in for a parameter."""
        self._rows[self._under_way][index].copy_(grad)

    def added(self, index: int, grad: Tensor) -> None:
        """Look at a ``.grad`` that has just been added to."""
        self._norms[index] = torch.linalg.vector_norm(grad, 1)

    def vectors(self, inside: Sequence[Sequence[Span]], newest: int) -> Vectors:
        """Return what ``.grad`` holds; ``inside`` are the batches of each parameter, ``newest`` the newest backward."""
        total = torch.cat(
            [
                (p.new_zeros(p.numel()) if p.grad is None else plain(p.grad).flatten()).to(self._ring)
                for p in self._params
            ]
        )
        first = max(newest - len(self._ring) + 2, self._begun + 1)
        numbers = [n for n in range(first, newest + 1) if any(within(n, spans) for spans in inside)]
        factors = self._factors(inside, numbers)
        rows = self._ring[[n % len(self._ring) for n in numbers]]
        if all(row == [1.0] * len(row) for row in factors):
            pass
        elif all(row == row[:1] * len(row) for row in factors):
            rows *= rows.new_tensor([row[:1] for row in factors])
        else:
            sizes = torch.tensor([param.numel() for param in self._params], device=rows.device)
            rows *= rows.new_tensor(factors).repeat_interleave(sizes, dim=1)
        spans: list[Span | None] = [(n, n) for n in numbers]
        rest = total - rows.sum(0)
        if float(rest.norm()) > _ROUNDING * (float(rows.norm(dim=1).sum()) + float(total.norm())):
            oldest = min((spans[0][0] for spans in inside if spans), default=newest + 1)
            before = (numbers[0] if numbers else newest + 1) - 1
            spans.insert(0, (oldest, before) if oldest <= before else None)
            rows = torch.cat([rest[None], rows])
        return Vectors(tuple(spans), rows, total)

    def _look(self) -> list[Tensor]:
        there = [(at, plain(p.grad)) for at, p in enumerate(self._params) if p.grad is not None]
        norms = [self._none] * len(self._params)
        if there:
            for (at, _), norm in zip(there, _torch.foreach_norm([grad for _, grad in there], 1), strict=True):
                norms[at] = norm
        return norms

    def _factors(self, inside: Sequence[Sequence[Span]], numbers: Sequence[int]) -> list[list[float]]:
        """Return what each contribution (a row) has been scaled by since, in each parameter; 0 where it is not in."""
        if not numbers:
            return []
        now = numbers[-1], torch.stack(self._look()) / torch.stack(self._norms)
        known = [each for each in (*self._ratios, now) if each[0] >= numbers[0]]
        ratios = [_sound(row) for row in torch.stack([ratio for _, ratio in known]).tolist()]
        products = [*accumulate(reversed(ratios), lambda a, b: [x * y for x, y in zip(a, b, strict=True)])][::-1]
        out = []
        for number in numbers:
            at = next(at for at, (upto, _) in enumerate(known) if upto >= number)
            row = zip(products[at], inside, strict=True)
            out.append([factor if within(number, spans) else 0.0 for factor, spans in row])
        return out


def lay_in_plane(vectors: Vectors, stale: Sequence[bool], scale: float = 1.0) -> Contributions:
    """Lay parts into the plane of their sum and the newest of them; ``scale`` is what ``.grad`` is multiplied by."""
    rows, norm = vectors.rows, float(vectors.total.norm())
    known = list(zip(vectors.spans, stale, strict=True))
    if not known or not norm or not math.isfinite(norm):
        places = [(math.nan, math.nan)] * (len(known) if norm else 0)
        return _told(known, places, norm, scale)
    unit = vectors.total / norm
    along = rows @ unit
    beside = rows - along[:, None] * unit
    lengths = beside.norm(dim=1)
    # The newest one spans the plane, unless it lies on the sum: then the one that lies farthest from it does.
    at = -1 if float(lengths[-1]) > 1e-5 * norm else int(lengths.argmax())
    length = float(lengths[at])
    across = beside @ (beside[at] / length) if length > 1e-5 * norm else torch.zeros_like(along)
    return _told(known, list(zip(along.tolist(), across.tolist(), strict=True)), norm, scale)


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
    known: Sequence[tuple[Span | None, bool]], places: Sequence[tuple[float, float]], norm: float, scale: float
) -> Contributions:
    parts = (
        Contribution(span, stale, along / norm, along / scale, across / scale)
        for (span, stale), (along, across) in zip(known, places, strict=False)
    )
    return Contributions(tuple(parts), norm / scale)


def _sound(ratios: list[float]) -> list[float]:
    """A ratio is 1 where nothing was scaled, up to rounding, and where there was nothing to scale."""
    return [ratio if math.isfinite(ratio) and abs(ratio - 1) > 1e-5 else 1.0 for ratio in ratios]


def plain(grad: Tensor) -> Tensor:
    """Return a gradient dense, and without the graph that ``create_graph=True`` leaves on it."""
    grad = grad.detach()
    return grad if grad.layout is torch.strided else grad.to_dense()

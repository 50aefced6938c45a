"""Every moment of a loop of two ranks: what each ``.grad`` is made of, what was sent, and where the weights are.

The contributions follow from what the two processes saw by two rules. ``backward()`` adds a rank's own gradient to its
``.grad``; an all-reduce replaces each ``.grad`` by the mean of both, which holds half of each rank's contributions.
``zero_grad()`` drops them; what a step has used and the next update still holds is stale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from .loop import LoopSettings
from .measure import TwoRanksSeen, Vector, one_process, whole_gradient


class Origin(NamedTuple):
    """Where a contribution comes from."""

    rank: int
    micro: int
    """Counted from 1, through all updates."""


@dataclass(frozen=True)
class Part:
    """What one rank's samples of one micro-batch contribute to a ``.grad``."""

    origin: Origin
    share: float
    """How much of the gradient is in it: 1 in the rank's own ``.grad``, 0.5 after an all-reduce."""
    vector: Vector
    """The share times the gradient."""
    stale: bool
    """Whether a step has used it already."""


@dataclass(frozen=True)
class RankMoment:
    """One rank at one moment."""

    grad: Vector | None
    """As the process saw it; None after ``zero_grad()``."""
    parts: tuple[Part, ...]
    """They add up to ``grad``, to rounding."""
    path: tuple[Vector, ...]
    """The weights, from the start to now."""
    whole: Vector
    """The gradient that one process with all samples of the window would have at the weights of this update."""

    @property
    def off(self) -> float:
        """How far ``.grad`` is from ``whole``, as a part of its length."""
        return math.dist(self.grad or (0.0, 0.0), self.whole) / math.hypot(*self.whole)


@dataclass(frozen=True)
class Message:
    """One all-reduce: at which moment, and the bytes that each rank handed in."""

    moment: int
    bytes: int


@dataclass(frozen=True)
class Moment:
    """Both ranks after one statement."""

    number: int
    update: int
    """Counted from 1; 0 before the first statement."""
    statement: str
    """"start", "zero_grad", "backward", "all-reduce" or "step"."""
    micro: int
    """The micro-batch in its window, from 1; 0 outside."""
    quiet: bool
    """With "all-reduce": none was made, because the micro-batch is inside ``no_sync()``."""
    ranks: tuple[RankMoment, RankMoment]
    messages: tuple[Message, ...]
    """So far."""
    complete: bool
    """Whether the last micro-batch of the window is in: now ``.grad`` should be what one process would have."""
    alone: tuple[Vector, ...]
    """The weights of one process with all samples, from the start to now."""

    @property
    def apart(self) -> float:
        """The distance between the weights of the two ranks."""
        return math.dist(self.ranks[0].path[-1], self.ranks[1].path[-1])


class _Rank:
    """One ``.grad`` and what it is made of, as statement after statement is gone through."""

    def __init__(self) -> None:
        self.shares: dict[Origin, float] = {}
        self.stale: set[Origin] = set()
        self.grad: Vector | None = None
        self.path: list[Vector] = [(0.0, 0.0)]
        self.whole: Vector = (0.0, 0.0)

    def begin(self, cleared: Vector | None) -> None:
        """Begin an update; ``cleared`` is what the process saw in ``.grad`` when its first micro-batch came."""
        self.grad = cleared
        if cleared is None:
            self.shares.clear()
            self.stale.clear()
        self.stale |= set(self.shares)  # what is still there was used by the step before

    def add(self, origin: Origin, grad: Vector) -> None:
        """Take in this rank's own gradient, all of it."""
        self.shares[origin], self.grad = 1.0, grad

    def now(self, own: dict[Origin, Vector]) -> RankMoment:
        """Return this moment; ``own`` is the whole gradient of each origin."""
        parts = []
        for origin, share in self.shares.items():
            x, y = own[origin]
            parts.append(Part(origin, share, (share * x, share * y), origin in self.stale))
        return RankMoment(self.grad, tuple(parts), tuple(self.path), self.whole)


def moments_of(settings: LoopSettings, seen: TwoRanksSeen) -> list[Moment]:
    """Return the moments: the start, and one after each statement."""
    window = settings.accumulate
    ranks = (_Rank(), _Rank())
    own: dict[Origin, Vector] = {}
    messages: list[Message] = []
    found: list[Moment] = []
    alone = one_process(window)

    def note(update: int, statement: str, micro: int = 0, quiet: bool = False) -> None:
        steps = len(ranks[0].path)
        both = (ranks[0].now(own), ranks[1].now(own))
        complete = statement == "step" or (statement == "all-reduce" and micro == window)
        found.append(
            Moment(len(found), update, statement, micro, quiet, both, tuple(messages), complete, alone[:steps])
        )

    note(0, "start")
    for update, both in enumerate(zip(*seen, strict=True), 1):
        first = (update - 1) * window
        for rank, saw in zip(ranks, both, strict=True):
            rank.whole = whole_gradient(rank.path[-1], first, window)
            rank.begin(saw.cleared)
        note(update, "zero_grad")
        for micro in range(window):
            for number, saw in enumerate(both):
                origin = Origin(number, first + micro + 1)
                own[origin] = saw.micros[micro].own
                ranks[number].add(origin, saw.micros[micro].before)
            note(update, "backward", micro + 1)
            sent = both[0].micros[micro].sent
            messages += [Message(len(found), count) for count in sent]
            if sent:
                _average(ranks)
            for rank, saw in zip(ranks, both, strict=True):
                rank.grad = saw.micros[micro].after
            note(update, "all-reduce", micro + 1, quiet=not sent)
        for rank, saw in zip(ranks, both, strict=True):
            rank.path.append(saw.weights)
        note(update, "step")
    return found


def _average(ranks: tuple[_Rank, _Rank]) -> None:
    """Let both hold half of each other's contributions; what is stale in one is stale in both."""
    origins = sorted({origin for rank in ranks for origin in rank.shares}, key=lambda each: (each.micro, each.rank))
    mean = {origin: sum(rank.shares.get(origin, 0.0) for rank in ranks) / 2 for origin in origins}
    stale = ranks[0].stale | ranks[1].stale
    for rank in ranks:
        rank.shares, rank.stale = dict(mean), set(stale)

"""Where the statements of some updates lie from left to right in a picture of memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..scenes import Memory
from .limits import Numbers

Indices = npt.NDArray[np.int64]

MOST_SHOWN = 130
"""Older updates are left out while there are more: a statement narrower than two pixels says nothing."""
_GAP = 7.0  # CSS pixels between two updates
_STILL = 0.4  # how wide a statement is in which no byte moves, such as the head of a ``for``; one that does counts 1


@dataclass(frozen=True, eq=False)  # kept from frame to frame, and known by what it is
class StatementLayout:
    """Places in CSS pixels from the left end of the axes."""

    statements: list[tuple[float, float]]
    left: Numbers
    """The left and the right end of every point."""
    right: Numbers
    updates: list[tuple[float, float]]
    points: list[tuple[int, int]]
    """First point of each update, and the first that is no longer in it."""


def keep_recent(scene: Memory, updates: int, most: int = MOST_SHOWN) -> Memory:
    """Return the scene of its newest ``updates``, of fewer while it has more than ``most`` statements; one stays."""
    kept = list(scene.updates)[-updates:]
    while len(kept) > 1 and len(scene.statements) - kept[0][0] > most:
        kept.pop(0)
    if not kept or not 0 < (first := kept[0][0]) < min(len(scene.statements), len(scene.starts)):
        return scene
    begin = scene.starts[first]
    return replace(
        scene,
        statements=scene.statements[first:],
        starts=[start - begin for start in scene.starts[first:]],
        categories={name: values[begin:] for name, values in scene.categories.items()},
        updates=[(at - first, number) for at, number in kept],
        modules=scene.modules[begin:],
    )


def bounds(starts: Sequence[int], statements: int, points: int) -> list[int]:
    """Return the first point of each statement and, at the end, the number of points, whatever ``starts`` holds."""
    known = np.clip(np.array([*starts][:statements], dtype=np.int64), 0, points)
    known = np.maximum.accumulate(known) if len(known) else known
    return [*known.tolist(), *[points] * (statements + 1 - len(known))]


def layout_statements(ends: Sequence[int], first: Sequence[int], moved: Sequence[bool], wide: float) -> StatementLayout:
    """Share ``wide`` pixels out: more for a statement with more points, little for one in which nothing moves.

    ``ends`` is what ``bounds`` returns, ``first`` the first statement of each update, the first of them 0.
    """
    count = len(moved)
    updates = list(zip(first, [*first[1:], count], strict=True))
    weights = [1 + math.log2(max(ends[at + 1] - ends[at], 1)) if moved[at] else _STILL for at in range(count)]
    unit = (wide - _GAP * max(len(updates) - 1, 0)) / max(sum(weights), 1e-9)
    places, spans = [], []
    x = 0.0
    for begin, end in updates:
        start = x
        for weight in weights[begin:end]:
            places.append((x, x + weight * unit))
            x += weight * unit
        spans.append((start, x))
        x += _GAP
    left, right = np.zeros(ends[-1]), np.zeros(ends[-1])
    for at, (a, b) in enumerate(places):
        inside = np.linspace(a, b, ends[at + 1] - ends[at] + 1)
        left[ends[at] : ends[at + 1]], right[ends[at] : ends[at + 1]] = inside[:-1], inside[1:]
    return StatementLayout(places, left, right, spans, [(ends[a], ends[b]) for a, b in updates])


def decimate(left: Numbers, right: Numbers, total: Numbers, pixel: float = 1.0) -> tuple[Indices, Numbers, Numbers]:
    """Keep of all points within one pixel the one with the largest total: return (kept, left, right)."""
    if len(total) < 2 or (right - left).min() >= pixel:
        return np.arange(len(total), dtype=np.int64), left, right
    column = np.floor((left + right) / 2 / pixel).astype(np.int64)
    begins = np.r_[0, np.flatnonzero(np.diff(column)) + 1]
    ends = np.r_[begins[1:], len(total)]
    highest = np.flatnonzero(total == np.repeat(np.maximum.reduceat(total, begins), ends - begins))
    kept = highest[np.searchsorted(highest, begins)]  # the first of each column
    return kept, left[begins], right[ends - 1]


def repeated(words: Sequence[str]) -> tuple[int, int, int] | None:
    """Find the block of words that comes at least three times in a row: (where it begins, its length, how often)."""
    best: tuple[int, int, int] | None = None
    for length in range(1, len(words) // 3 + 1):
        at = 0
        while at + 3 * length <= len(words):
            times = 1
            while words[at + times * length : at + (times + 1) * length] == words[at : at + length]:
                times += 1
            if times >= 3 and (best is None or times * length > best[1] * best[2]):
                best = (at, length, times)
            at += max(1, (times - 1) * length)
    return best

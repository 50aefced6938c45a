"""The axis below a picture of memory: where statements lie from left to right, their words, and brackets for many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..scenes import Memory, StatementLabel
from .axes import Numbers
from .labels import Box, Placer, Spot, shorten, text_width
from .marks import Mark, Path

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


@lru_cache(maxsize=64)
def layout_statements(
    ends: tuple[int, ...], first: tuple[int, ...], moved: tuple[bool, ...], wide: float
) -> StatementLayout:
    """Share ``wide`` pixels out: more for a statement with more points, little for one in which nothing moves.

    ``ends`` is what ``bounds`` returns, ``first`` the first statement of each update, the first of them 0. The places
    of the same loop are the same object.
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


FIRST = (
    StatementLabel.BACKWARD,
    StatementLabel.STEP,
    StatementLabel.ZERO_GRAD,
    StatementLabel.OUTPUT,
    StatementLabel.AUTOCAST,
)
"""Statements whose word is written if there is any room."""
_LAST = (StatementLabel.FOR, StatementLabel.WHILE, StatementLabel.IF, StatementLabel.WINDOW, StatementLabel.BATCH)
_SIZE, _LONGEST = 11.0, 76.0  # of a word, and CSS pixels that it may take
MIN_UPDATE_WIDTH_PX = 75.0
"""CSS pixels of an update: in less its words are written level as far as they fit, and never slanted."""
_NARROW = 40.0  # CSS pixels: a block of statements that is narrower has no room for their words
_SLANT = 50.0


@lru_cache(maxsize=64)
def statement_words(
    words: tuple[str, ...],
    first: tuple[int, ...],
    where: StatementLayout,
    origin: tuple[float, float],
    size: tuple[float, float],
) -> tuple[tuple[Mark, ...], tuple[Box, ...]]:
    """Return the words below the axis, whose left end is ``origin``, as marks, and what they cover."""
    left, bottom = origin
    covered: set[int] = set()
    brackets: list[float] = []
    placer = Placer(*size)
    marks: list[Mark | None] = []
    for begin, end in pairwise([*first, len(words)]):
        if (block := repeated(words[begin:end])) is None:
            continue
        at, length, count = begin + block[0], block[1], block[2]
        a, b = where.statements[at][0], where.statements[at + length * count - 1][1]
        if (b - a) / count < _NARROW and b - a > 24:
            covered |= set(range(at, at + length * count))
            x, y = left + a + 1, left + b - 1
            brackets += [x, bottom + 3, x, bottom + 7, y, bottom + 7, y, bottom + 3, math.nan, math.nan]
            spot = Spot(_many(words[at : at + length], count, b - a), left + (a + b) / 2, bottom + 17, "middle")
            marks.append(placer.place(f"many {at}", [spot], size=_SIZE))
    rank: dict[str, int] = {word: at for at, word in enumerate(FIRST)}
    rank.update(dict.fromkeys(_LAST, len(FIRST) + 1))
    widths = [right - left for left, right in where.statements]
    shown = (at for at in range(len(words)) if at not in covered)
    order = sorted(shown, key=lambda at: (rank.get(words[at], len(FIRST)), -widths[at]))
    down = bottom + (34 if covered else 12)
    texts = [shorten(word, _LONGEST, _SIZE) for word in words]
    flat = _place(placer, order, texts, where, left, down, 0.0)
    slants = not covered and where.updates[-1][1] >= len(first) * MIN_UPDATE_WIDTH_PX
    if slants and not set(FIRST) & set(words) <= {words[at] for at, mark in flat.items() if mark}:
        placer = Placer(*size)
        flat = _place(placer, order, texts, where, left, bottom + 8, _SLANT)
    marks += flat.values()
    line = [Path("brackets", np.array(brackets[:-2]), stroke="grey", width=1.2)] if brackets else []
    return (*line, *(mark for mark in marks if mark)), tuple(placer.boxes)


def _place(
    placer: Placer, order: list[int], texts: list[str], where: StatementLayout, left: float, y: float, angle: float
) -> dict[int, Mark | None]:
    anchor = "end" if angle else "middle"
    placed: dict[int, Mark | None] = {}
    for at in order:
        spot = Spot(texts[at], left + sum(where.statements[at]) / 2, y, anchor)
        placed[at] = placer.place(f"statement {at}", [spot], size=_SIZE, angle=angle)
    return placed


def _many(words: Sequence[str], count: int, wide: float) -> str:
    """Say what comes so many times, in what fits: ``16 micro-batches``, ``16 batches``."""
    full = f"{count} micro-batches" if "backward" in words else f"{count} \u00d7 {words[0]}"
    fits = (text for text in (full, f"{count} batches", f"{count} \u00d7") if text_width(text, _SIZE) < wide)
    return next(fits, f"{count}")

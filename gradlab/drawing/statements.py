"""The axis below a picture of memory: the words of the statements, and one bracket for many micro-batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from ..scenes import StatementLabel
from .labels import Box, Placer, Spot
from .lettering import shorten, text_width
from .marks import Mark, Path
from .spread import StatementLayout, layout_statements, repeated

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
LEAST = 75.0
"""CSS pixels of an update: in less its words are written level as far as they fit, and never slanted."""
_NARROW = 40.0  # CSS pixels: a block of statements that is narrower has no room for their words
_SLANT = 50.0


@lru_cache(maxsize=64)
def lay_out(ends: tuple[int, ...], first: tuple[int, ...], moved: tuple[bool, ...], wide: float) -> StatementLayout:
    """Return the places of all statements and points; the same object for the same loop."""
    return layout_statements(ends, first, moved, wide)


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
    order = _order(words, where.statements, covered)
    down = bottom + (34 if covered else 12)
    texts = [shorten(word, _LONGEST, _SIZE) for word in words]
    flat = _place(placer, order, texts, where, left, down, 0.0)
    slants = not covered and where.updates[-1][1] >= len(first) * LEAST
    if slants and not set(FIRST) & set(words) <= {words[at] for at, mark in flat.items() if mark}:
        placer = Placer(*size)
        flat = _place(placer, order, texts, where, left, bottom + 8, _SLANT)
    marks += flat.values()
    line = [Path("brackets", np.array(brackets[:-2]), stroke="grey", width=1.2)] if brackets else []
    return (*line, *(mark for mark in marks if mark)), tuple(placer.boxes)


def _order(words: Sequence[str], places: Sequence[tuple[float, float]], covered: set[int]) -> list[int]:
    """Return the statements in the order in which they get room for their word: by meaning, then by width."""
    rank: dict[str, int] = {word: at for at, word in enumerate(FIRST)}
    rank.update((word, len(FIRST) + 1) for word in _LAST)
    shown = (at for at in range(len(words)) if at not in covered)
    return sorted(shown, key=lambda at: (rank.get(words[at], len(FIRST)), places[at][0] - places[at][1]))


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

"""The x axis of a picture of memory: where statements lie from left to right, their words, and brackets for many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..scenes import Memory
from ..scenes import StatementLabel as Label
from .limits import Numbers
from .marks import Axis, AxisSpan

Indices = npt.NDArray[np.int64]

SHOWN_UPDATES = 2
MOST_SHOWN = 130
"""Older updates are left out while there are more statements: one that is narrower than two pixels says nothing."""
_STILL = 0.4  # the width of a statement in which no byte moves, such as the head of a ``for``; one that does has 1
_GAP = 0.03  # of the whole width, between two updates
_COLUMNS = 400  # of the points in each of these, the highest is drawn
_NARROW, _SHORT = 1 / 6, 0.1  # of the whole width: a block that is narrower has a bracket, unless all are shorter
_LETTERS = 44  # that have room along the axis
_FIRST = (Label.BACKWARD, Label.STEP, Label.ZERO_GRAD, Label.OUTPUT, Label.AUTOCAST)  # written if there is any room


class StatementLayout(NamedTuple):
    """Where statements and their points lie, in widths of a statement."""

    statements: list[tuple[float, float]]  # the left and the right end of each
    ends: list[int]  # the first point of each statement, and then the number of points
    left: Numbers  # of every point
    right: Numbers
    updates: list[tuple[slice, slice]]  # the statements of each, and its points
    wide: float

    def steps(self, total: Numbers) -> tuple[Numbers, Indices]:
        """Return the left and the right end of each point that is drawn, and its number; NaN between updates."""
        column = np.floor((self.left + self.right) * (_COLUMNS / 2 / self.wide))
        begins = np.flatnonzero(np.diff(column, prepend=-1.0))
        highest = np.lexsort((-total, column))[begins]
        x = np.column_stack([self.left[begins], self.right[np.append(begins, len(total))[1:] - 1]]).ravel()
        cuts = 2 * np.searchsorted(highest, [points.start for _, points in self.updates[1:]])
        return np.insert(x, cuts, np.nan), np.insert(np.repeat(highest, 2), cuts, 0)


def keep_recent(scene: Memory) -> Memory:
    """Return the scene of its newest updates, of fewer while they have too many statements; one stays."""
    recent = list(scene.updates)[-SHOWN_UPDATES:]
    while len(recent) > 1 and len(scene.statements) - recent[0][0] > MOST_SHOWN:
        recent.pop(0)
    if not recent or not 0 < (first := recent[0][0]) < min(len(scene.statements), len(scene.starts)):
        return scene
    begin = scene.starts[first]
    return replace(
        scene,
        statements=scene.statements[first:],
        starts=[start - begin for start in scene.starts[first:]],
        categories={name: values[begin:] for name, values in scene.categories.items()},
        updates=[(start - first, number) for start, number in recent],
        modules=scene.modules[begin:],
    )


def layout_statements(scene: Memory, tops: Numbers) -> StatementLayout:
    """Lay statements out: wider for more points, narrow where nothing moves.

    ``tops`` has a row for each category and a column for each point.
    """
    statements, points = len(scene.statements), tops.shape[1]
    known = np.clip(np.array([0, *scene.starts[1:statements]], dtype=np.int64), 0, points)
    ends = np.append(np.maximum.accumulate(known), [points] * (statements + 1 - len(known)))
    changes = np.append(0, np.cumsum((np.diff(tops, axis=1, prepend=-1.0) != 0).any(axis=0)))[ends]
    counts = np.maximum(np.diff(ends), 1)
    widths = np.where(np.diff(changes) > 0, 1 + np.log2(counts), _STILL)
    cuts = sorted({0, statements, *(start for start, _ in scene.updates if 0 < start < statements)})
    gaps = np.zeros(statements)
    gaps[cuts[1:-1]] = _GAP * widths.sum()
    right = np.cumsum(widths + gaps)
    left = np.append(0.0, right[:-1]) + gaps
    number = np.repeat(np.arange(statements), np.diff(ends))
    place = left[number] + (np.arange(points) - ends[number]) * (widths / counts)[number]
    updates = [(slice(a, b), slice(int(ends[a]), int(ends[b]))) for a, b in pairwise(cuts)]
    ends_of = list(zip(left.tolist(), right.tolist(), strict=True))
    return StatementLayout(ends_of, ends.tolist(), place, place + (widths / counts)[number], updates, float(right[-1]))


def statement_axis(words: Sequence[str], where: StatementLayout) -> Axis:
    """Return the axis with the words of statements, and a bracket for a block of them that comes many times."""
    spans: list[AxisSpan] = []
    for update, _ in where.updates:
        start, length, times = repeated(tuple(words[update]))
        block = range(update.start + start, update.start + start + length * times)
        low, high = (where.statements[block[0]][0], where.statements[block[-1]][1]) if block else (0.0, 0.0)
        bracket = times * _NARROW > (high - low) / where.wide > _SHORT
        for number in range(update.start, update.stop):
            if not (bracket and number in block):
                rank = _FIRST.index(words[number]) if words[number] in _FIRST else len(_FIRST)
                spans.append(AxisSpan(*where.statements[number], (str(words[number]),), rank))
        if bracket:
            what = "micro-batches" if Label.BACKWARD in words[block.start : block.stop] else f"\u00d7 {words[block[0]]}"
            texts = (f"{times} {what}", f"{times} batches", f"{times} \u00d7", f"{times}")
            spans.append(AxisSpan(low, high, texts, bracket=True))
    chief = [(span.low + span.high, len(span.texts[0])) for span in spans if span.rank < len(_FIRST)]
    crowded = any((b - a) / where.wide * _LETTERS < long + longer + 2 for (a, long), (b, longer) in pairwise(chief))
    slanted = crowded and not any(span.bracket for span in spans)
    return Axis(0.0, where.wide, ticks="slanted" if slanted else "none", spans=tuple(spans))


@lru_cache(maxsize=64)
def repeated(words: tuple[str, ...]) -> tuple[int, int, int]:
    """Find the block of words that comes at least three times in a row: (where it begins, its length, how often)."""
    best = (0, 0, 0)
    for start, length in product(range(len(words)), range(1, len(words) // 3 + 1)):
        times = 1
        while words[start + times * length : start + (times + 1) * length] == words[start : start + length]:
            times += 1
        if times >= 3 and times * length > best[1] * best[2]:
            best = (start, length, times)
    return best

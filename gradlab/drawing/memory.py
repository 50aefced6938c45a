"""The memory panel: bytes by category over the last updates, statement by statement, and the cause of the peak."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..formatting import bytes_text
from ..scenes import Memory, peak_location, share_of_gpu
from ..scenes import StatementLabel as Label
from .limits import Numbers, from_zero, numbers
from .marks import AXES_EDGE, Area, Axes, Axis, AxisSpan, Band, Dots, Drawing, Key, Line, Mark, Text, draw

_ROLES = {
    "weights": ("weights", ""),
    "optimizer": ("optimizer", ".."),
    "inputs": ("grey", "--"),
    "gradients": ("gradients", ""),  # not striped, because stripes mean that a step has applied gradients again
    "activations": ("activations", "\\\\"),
    "other": ("grey", ""),
}
"""Role and hatch of each category, from the bottom of the stack to the top; unknown categories count as "other"."""
BESIDE_TENSORS = {"allocator": ("grey", "//"), "CUDA": ("ink", "")}
"""Role and hatch of each category of bytes on a GPU that are not in tensors, from the bottom to the top."""
_LEVELS = {"capacity": (2.0, "dashdot"), "allocated": (1.5, "dashed"), "reserved": (1.5, "dotted")}
"""Level -> largest value at which it is drawn, in units of the peak, and the dashes of its line."""
_ROOM_OF_ONE, _ROOM_OF_SEVERAL = 1.15, 1.3  # upper limit of the axis in peaks, for one update and for several
_MIN_NAMED_SHARE = 0.007  # share of the axis that a category must exceed in the last update to have a label
_NOTHING = "No memory was watched yet"

Edges = dict[str, tuple[Numbers, Numbers]]


def stacked(categories: Mapping[str, Iterable[float]], count: int, above: Iterable[str] = ()) -> Edges:
    """Stack categories, ``above`` on top, and return both edges of each at ``count`` points; missing values are 0."""
    rows = {name: row for row, name in enumerate((*_ROLES, *above), 1)}
    heights = np.zeros((len(rows) + 1, count))
    for name, values in categories.items():
        sizes = np.maximum(np.nan_to_num(numbers(values), posinf=0.0, neginf=0.0)[:count], 0.0)
        heights[rows.get(name, rows["other"]), : len(sizes)] += sizes
    edges = np.cumsum(heights, axis=0)
    return {name: (edges[row - 1], edges[row]) for name, row in rows.items()}


def area_style(name: str) -> dict[str, Any]:
    """Return the fill, stroke and hatch of a category, as fields of a Band, an Area or a Key."""
    role, hatch = (_ROLES | BESIDE_TENSORS)[name]
    if role != "grey":
        return {"fill": f"{role}/50", "stroke": role, "hatch": hatch}
    return {"fill": f"grey/{25 if hatch else 40}", "stroke": "grey/70", "hatch": hatch}


def text_role(name: str) -> str:
    """Return the colour role of a category's label, which is readable on paper and on the category's area."""
    return f"{(_ROLES | BESIDE_TENSORS)[name][0]}-text"


def category_name(name: str, texts: tuple[str, ...], y: float) -> Text:
    """Return a label with a swatch for a category, in the margin to the right of the axes."""
    swatch = Key((name,), **area_style(name))
    return Text(f"name {name}", texts, y=y, where="margin", role=text_role(name), swatch=swatch)


@draw.register
def draw_memory(scene: Memory) -> Drawing:
    """Draw bytes stacked by category, mark the peak of each update, and name the cause of the newest peak."""
    if not scene.statements:
        return Drawing("memory", (), (Axes(Axis(ticks="none"), Axis(ticks="bytes")),), scene.note or _NOTHING)
    edges = stacked(scene.categories, max(map(len, scene.categories.values()), default=0))
    total = edges["other"][1]
    layout = layout_statements(scene, np.array([high for _, high in edges.values()]))
    last, peak = layout.updates[-1][1], float(total.max(initial=0.0))
    newest = float(total[last].max(initial=0.0))
    card, capacity = scene.capacity or ("", 0)
    sizes = zip(_LEVELS, (capacity, scene.allocated or 0, scene.reserved or 0), strict=True)
    levels = {name: float(size) for name, size in sizes if 0 < size <= _LEVELS[name][0] * peak}
    room = peak * (_ROOM_OF_SEVERAL if len(layout.updates) > 1 else _ROOM_OF_ONE)
    top = from_zero(max(room, *(size * 1.15 for size in levels.values()), 0.0))
    marks = [*_areas(scene, edges, layout), *_peaks(scene, total, layout, top)]
    for name, size in levels.items():
        text = f"{card if name == 'capacity' else name} {bytes_text(size)}"
        marks.append(Line(f"level {name}", (-AXES_EDGE, size, AXES_EDGE, size), "ink", 1.4, _LEVELS[name][1], text))
        marks.append(Text(f"level name {name}", (text,), of=f"level {name}", where="beside", size=11.0, clear=True))
    for name, (low, high) in edges.items():  # label the right end or, if it is thin there, the thickest point
        thick = (high - low)[last]
        if thick.max(initial=0.0) > _MIN_NAMED_SHARE * top:
            point = -1 if thick[-1] > _MIN_NAMED_SHARE * top else int(thick.argmax())
            marks.append(category_name(name, (name,), float(low[last][point] + high[last][point]) / 2))
    causes, far = _causes(scene, layout, last.start + int(total[last].argmax()), newest) if newest > 0 else (), ""
    if scene.capacity and newest > 0 and ("capacity" not in levels or newest > capacity):
        far = share_of_gpu(card, capacity, newest)
    reserved = f"reserved {bytes_text(scene.reserved)}" if scene.reserved and "reserved" not in levels else ""
    remarks = [part for part in (reserved, scene.note) if part]
    corner = (" \u00b7 ".join(remarks), *remarks[1:]) if remarks else ()
    cause = causes[0].removeprefix("\u25bc ") if causes else ""
    description = ". ".join(part for part in (cause[:1].upper() + cause[1:], far, scene.note) if part) or _NOTHING
    notes = tuple(texts for texts in (causes, (far,)) if any(texts))
    axes = Axes(statement_axis(scene.statements, layout), Axis(0.0, top, ticks="bytes"))
    return Drawing("memory", marks, (axes,), description, corner=corner, notes=notes)


def _areas(scene: Memory, edges: Edges, layout: StatementLayout) -> list[Mark]:
    """Return an Area with a description for each statement, a Band for each category, and lines between updates."""
    total = edges["other"][1]
    marks: list[Mark] = []
    for number, (statement, (begin, end)) in enumerate(zip(scene.statements, pairwise(layout.ends), strict=True)):
        if begin < end:
            high = begin + int(total[begin:end].argmax())
            sizes = {name: float(upper[high] - lower[high]) for name, (lower, upper) in edges.items()}
            parts = [f"{name} {bytes_text(size)}" for name, size in sizes.items() if size > 0]
            label = f"{statement}: {', '.join(parts) or 'nothing'}"
            a, b = layout.statements[number]
            corners = (a, -AXES_EDGE, a, AXES_EDGE, b, AXES_EDGE, b, -AXES_EDGE)
            marks.append(Area(f"at {number}", corners, "paper", words=label))
    x, points = layout.steps(total)
    for name, (lower, upper) in edges.items():  # x is NaN where the category has no bytes
        triples = np.stack([np.where(upper[points] > lower[points], x, np.nan), lower[points], upper[points]], -1)
        marks.append(Band(name, triples.ravel(), width=1.2, **area_style(name)))
    for number, (update, _) in enumerate(layout.updates[1:]):
        middle = (layout.statements[update.start][0] + layout.statements[update.start - 1][1]) / 2
        marks.append(Line(f"divider {number}", (middle, -AXES_EDGE, middle, AXES_EDGE), "faint"))
    return marks


def _peaks(scene: Memory, total: Numbers, layout: StatementLayout, top: float) -> list[Mark]:
    """Return dots on the peaks, labels of the updates and, with several updates, labels with the bytes of the peaks."""
    numbers, texts, tips = dict(scene.updates), list[Mark](), list[float]()
    for update, (statements, points) in reversed(list(enumerate(layout.updates if numbers else ()))):  # newest first
        low, high = layout.statements[statements.start][0], layout.statements[statements.stop - 1][1]
        if (number := numbers.get(statements.start)) is not None:
            name = (f"update {number:,}", f"{number:,}")
            texts.append(Text(f"update {update}", name, (low + high) / 2, AXES_EDGE, where="center", size=11.0))
        if total[points].max(initial=0.0) > 0:
            point = points.start + int(total[points].argmax())
            x = float(layout.left[point] + layout.right[point]) / 2
            y = float(total[point]) + top / 30  # the tip of the mark touches the area
            tips += [x, y]
            if len(layout.updates) > 1:
                half = layout.wide / 10  # about half the width of the label, which is kept within its update
                x = min(max(x, low + half), max(high - half, low))
                texts.append(Text(f"peak {update}", (bytes_text(total[point]),), x, y, where="above", size=11.0))
    return [Dots("peaks", tuple(tips), "down", 8.0, "ink"), *texts] if tips else texts


def _causes(scene: Memory, layout: StatementLayout, point: int, size: float) -> tuple[str, ...]:
    """Return descriptions of the newest peak and its cause, each with a shorter form of the module's name."""
    if not scene.updates:  # no update was watched: these are bytes between two updates, not a peak
        return (f"{bytes_text(size)} at rest, between two updates",)
    statement = scene.statements[bisect_right(layout.ends, point) - 1]
    module = scene.modules[point] if point < len(scene.modules) else ""
    parts = module.split(".")
    cuts = dict.fromkeys([module, *(f"\u2026{'.'.join(parts[first:])}" for first in range(1, len(parts))), ""])
    return tuple(f"\u25bc peak {bytes_text(size)} {peak_location(statement, cut)}" for cut in cuts)


# The x axis: positions of statements, their labels, and brackets for repeated ones ---------------------------------

_STILL_WIDTH = 0.4  # width of a statement that changes no bytes, such as the head of a ``for``; others have at least 1
_GAP = 0.03  # distance between two updates, in units of the width of all statements
_COLUMNS = 400  # number of columns in the picture; only the highest point of each column is drawn
_BRACKET_BELOW = 1 / 6  # share of the axis below which one repetition of a block is too narrow for labels
_MIN_BRACKET = 0.1  # share of the axis above which a bracket for all repetitions is wide enough
_CHARS = 44  # number of characters that fit along the axis
_RANKED = (Label.BACKWARD, Label.STEP, Label.ZERO_GRAD, Label.OUTPUT, Label.AUTOCAST)  # labels that are written first


class StatementLayout(NamedTuple):
    """The positions of statements and their points on the x axis, in units of the width of a one-point statement."""

    statements: list[tuple[float, float]]  # the left and the right end of each statement
    ends: list[int]  # the index of each statement's first point, and then the number of points
    left: Numbers  # the left end of every point
    right: Numbers  # the right end of every point
    updates: list[tuple[slice, slice]]  # the statements and the points of each update
    wide: float  # the width of all statements

    def steps(self, total: Numbers) -> tuple[Numbers, npt.NDArray[np.int64]]:
        """Return the left and right x of each column, NaN between updates, and its highest point's index for each x."""
        column = np.floor((self.left + self.right) * (_COLUMNS / 2 / self.wide))
        begins = np.flatnonzero(np.diff(column, prepend=-1.0))
        highest = np.lexsort((-total, column))[begins]
        x = np.column_stack([self.left[begins], self.right[np.append(begins, len(total))[1:] - 1]]).ravel()
        cuts = 2 * np.searchsorted(highest, [points.start for _, points in self.updates[1:]])
        return np.insert(x, cuts, np.nan), np.insert(np.repeat(highest, 2), cuts, 0)


def layout_statements(scene: Memory, tops: Numbers) -> StatementLayout:
    """Return the layout of statements: one with more points is wider, and one that changes no bytes is narrow.

    ``tops`` are the upper edges of the categories, with a row for each category and a column for each point.
    """
    statements, points = len(scene.statements), tops.shape[1]
    starts = np.clip(np.array([0, *scene.starts[1:statements]], dtype=np.int64), 0, points)
    ends = np.append(np.maximum.accumulate(starts), [points] * (statements + 1 - len(starts)))
    changes = np.append(0, np.cumsum((np.diff(tops, axis=1, prepend=-1.0) != 0).any(axis=0)))[ends]
    counts = np.maximum(np.diff(ends), 1)
    widths = np.where(np.diff(changes) > 0, 1 + np.log2(counts), _STILL_WIDTH)
    cuts = sorted({0, statements, *(start for start, _ in scene.updates if 0 < start < statements)})
    gaps = np.zeros(statements)
    gaps[cuts[1:-1]] = _GAP * widths.sum()
    right = np.cumsum(widths + gaps)
    left = np.append(0.0, right[:-1]) + gaps
    number, step = np.repeat(np.arange(statements), np.diff(ends)), widths / counts
    x = left[number] + (np.arange(points) - ends[number]) * step[number]
    updates = [(slice(a, b), slice(int(ends[a]), int(ends[b]))) for a, b in pairwise(cuts)]
    sides = list(zip(left.tolist(), right.tolist(), strict=True))
    return StatementLayout(sides, ends.tolist(), x, x + step[number], updates, float(right[-1]))


def statement_axis(labels: Sequence[str], layout: StatementLayout) -> Axis:
    """Return the x axis with a label for each statement, but a single bracket for a block that is repeated often."""
    spans: list[AxisSpan] = []
    for update, _ in layout.updates:
        start, length, times = repeated(tuple(labels[update]))
        block = range(update.start + start, update.start + start + length * times)
        low, high = (layout.statements[block[0]][0], layout.statements[block[-1]][1]) if block else (0.0, 0.0)
        bracket = times * _BRACKET_BELOW > (high - low) / layout.wide > _MIN_BRACKET
        for number in range(update.start, update.stop):
            if not (bracket and number in block):
                rank = _RANKED.index(labels[number]) if labels[number] in _RANKED else len(_RANKED)
                spans.append(AxisSpan(*layout.statements[number], (str(labels[number]),), rank))
        if bracket:
            trains = Label.BACKWARD in labels[block.start : block.stop]
            name = f"{times} micro-batches" if trains else f"{times} \u00d7 {labels[block[0]]}"
            texts = (name, f"{times} batches", f"{times} \u00d7", f"{times}")
            spans.append(AxisSpan(low, high, texts, bracket=True))
    chief = [(span.low + span.high, len(span.texts[0])) for span in spans if span.rank < len(_RANKED)]
    crowded = any((b - a) / layout.wide * _CHARS < long + longer + 2 for (a, long), (b, longer) in pairwise(chief))
    slanted = crowded and not any(span.bracket for span in spans)
    return Axis(0.0, layout.wide, ticks="slanted" if slanted else "none", spans=tuple(spans))


@lru_cache(maxsize=64)
def repeated(labels: tuple[str, ...]) -> tuple[int, int, int]:
    """Return start, length and count of the block whose repetitions (3 or more) cover the most labels, or (0, 0, 0)."""
    best = (0, 0, 0)
    for start, length in product(range(len(labels)), range(1, len(labels) // 3 + 1)):
        times = 1
        while labels[start + times * length : start + (times + 1) * length] == labels[start : start + length]:
            times += 1
        if times >= 3 and times * length > best[1] * best[2]:
            best = (start, length, times)
    return best

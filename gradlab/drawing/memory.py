"""Bytes by category over the last updates, statement by statement, the peak and its cause named."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from ..formatting import bytes_text
from ..scenes import Memory, peak_location, share_of_gpu
from .axes import Axes, Numbers, Side, from_zero, make_axes, numbers
from .builder import MARGIN, PanelBuilder, make_box
from .labels import Box, Spot, shorten, spread_labels, text_width
from .marks import Band, Dots, Drawing, Path
from .statements import (
    MIN_UPDATE_WIDTH_PX,
    Indices,
    StatementLayout,
    bounds,
    decimate,
    keep_recent,
    layout_statements,
    statement_words,
)

_ROLES = {
    "weights": ("weights", ""),
    "gradients": ("gradients", "//"),
    "optimizer": ("optimizer", ".."),
    "activations": ("activations", "\\\\"),
    "inputs": ("grey", "--"),
    "other": ("grey", ""),
}
"""Role and hatch of each category, from the bottom of the stack to the top; unknown ones look like "other"."""
BESIDE_TENSORS = {"allocator": ("grey", "//"), "CUDA": ("ink", "")}
"""What a card holds above the tensors, from the bottom to the top."""
_LOOKS = _ROLES | BESIDE_TENSORS
_LARGEST = 1e290


def stacked(
    categories: Mapping[str, Iterable[float]], count: int, above: Iterable[str] = ()
) -> dict[str, tuple[Numbers, Numbers]]:
    """Return the lower and the upper edge of each category at ``count`` points; what is missing counts as 0."""
    rows = {name: at for at, name in enumerate((*_ROLES, *above), 1)}
    heights = np.zeros((len(rows) + 1, count))
    for name, values in categories.items():
        got = np.clip(np.nan_to_num(numbers(values), posinf=0.0, neginf=0.0)[:count], 0, _LARGEST)
        heights[rows.get(name, rows["other"]), : len(got)] += got
    edges = np.cumsum(heights, axis=0)
    return {name: (edges[at - 1], edges[at]) for name, at in rows.items()}


def area_look(name: str) -> dict[str, Any]:
    """Return how the area of a category is drawn, as fields of a Path."""
    role, hatch = _LOOKS[name]
    strength = 50 if role != "grey" else 25 if hatch else 40
    return {"fill": f"{role}/{strength}", "stroke": role if role != "grey" else "grey/70", "hatch": hatch}


def text_role(name: str) -> str:
    """Return the role of the category's name: dark enough to read on paper and on its own area."""
    return f"{_LOOKS[name][0]}-text"


_LEVELS = {"capacity": (2.0, "dashdot"), "allocated": (1.5, "dashed"), "reserved": (1.5, "dotted")}
"""How many times the peak a level is drawn up to, while a higher one is said in words; and its dashes."""
_MOST_UPDATES = 3  # where there is room for so many, else one less
_NUMBER, _VALUE = 22, 16  # CSS pixels above the peak for the number of its update, and for its bytes
_LEFT, _RIGHT, _TOP, _BOTTOM, _LOW, _ROW = 62.0, 98.0, 44.0, 62.0, 44.0, 17.0  # CSS pixels
_CAUSE_Y = 34.0
_VISIBLE = 3.0  # CSS pixels: a statement that is narrower cannot be pointed at
_PATCH = 9.0  # CSS pixels: of a category's area, beside its name
_COLUMN = 6.0  # CSS pixels: how finely labels are kept off the areas

Edges = dict[str, tuple[Numbers, Numbers]]
bytes_words = lru_cache(maxsize=4096)(bytes_text)


def draw_memory(scene: Memory, width: int, height: int) -> Drawing:
    """Stack the categories, mark the peak of each update, and say what the newest one comes from."""
    panel = PanelBuilder("memory", width, height)
    wide = width - _LEFT - _RIGHT
    scene = keep_recent(scene, _MOST_UPDATES if wide >= _MOST_UPDATES * MIN_UPDATE_WIDTH_PX else _MOST_UPDATES - 1)
    count = max((len(values) for values in scene.categories.values()), default=0)
    ends = bounds(scene.starts, len(scene.statements), count)
    first = sorted({0} | {at for at, _ in scene.updates if 0 < at < len(scene.statements)})
    edges = stacked(scene.categories, count)
    total = edges["other"][1]
    peak = float(total.max()) if count else 0.0
    where = layout_statements(tuple(ends), tuple(first), tuple(_moved(edges, ends)), wide)
    newest = where.points[-1]
    amounts = (scene.capacity[1] if scene.capacity else None, scene.allocated, scene.reserved)
    levels = {
        name: float(amount)
        for (name, (sight, _)), amount in zip(_LEVELS.items(), amounts, strict=True)
        if amount is not None and 0 < amount <= sight * peak
    }
    highest, far = float(total[newest[0] : newest[1]].max(initial=0.0)), ""
    if scene.capacity and highest > 0 and ("capacity" not in levels or highest > scene.capacity[1]):
        far = share_of_gpu(*scene.capacity, highest)
    top, bottom = (
        _TOP + (_ROW if far else 0.0),
        height - (_BOTTOM if wide >= len(first) * MIN_UPDATE_WIDTH_PX else _LOW),
    )
    head = _NUMBER + (_VALUE if len(first) > 1 else 0)
    tall = bottom - top
    limit = from_zero(max(peak * tall / max(tall - head, 1), *(value * 1.15 for value in levels.values()), 0.0))
    size = (width, height)
    side = Side(0.0, limit, ticks="bytes")
    axes = make_axes(size, _LEFT, top, width - _RIGHT, bottom, Side(0.0, wide, ticks="none"), side)
    _add_statements(panel, axes, scene, edges, ends, where)
    _add_areas(panel, axes, edges, where)
    panel.axes(axes)
    words, boxes = statement_words(tuple(scene.statements), tuple(first), where, (axes.left, axes.bottom), size)
    panel.add(*words)
    panel.placer.take(boxes)
    cause = _add_words(panel, scene, total, newest, far, levels)
    if scene.updates:
        _add_peaks(panel, axes, total, where, [dict(scene.updates).get(at) for at in first])
    if levels:
        panel.placer.take(_covered(axes, total, where))
        _add_levels(panel, axes, scene, levels)
    _add_names(panel, axes, edges, where)
    return panel.finish(". ".join(part for part in (cause, far, scene.note) if part) or "No memory was watched yet")


def _add_areas(panel: PanelBuilder, axes: Axes, edges: Edges, where: StatementLayout) -> None:
    """Add a Band for each category, with steps from point to point; nothing where there are no bytes of it."""
    x, at = _steps(edges["other"][1], where)
    if len(x):
        lower = np.array([low for low, _ in edges.values()])[:, at]
        upper = np.array([high for _, high in edges.values()])[:, at]
        across = np.where(upper > lower, x + axes.left, math.nan)
        per_byte = (axes.top - axes.bottom) / axes.y.high
        quarters = np.rint(np.stack([across, axes.bottom + lower * per_byte, axes.bottom + upper * per_byte], -1) * 4)
        for name, band in zip(edges, quarters, strict=True):
            panel.add(_area(name, band.tobytes()))
    ends = tuple(axes.left + (a[1] + b[0]) / 2 for a, b in pairwise(where.updates))
    for number, x_end in enumerate(ends):
        line = (x_end, axes.bottom, x_end, axes.top)
        panel.add(Path(f"divider {number}", line, stroke="faint", width=1.5))


def _steps(total: Numbers, where: StatementLayout) -> tuple[Numbers, Indices]:
    """Return the left and the right end of at most a point for each pixel, and its number; NaN between updates."""
    places, points = [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    for begin, end in where.points:
        kept, left, right = decimate(where.left[begin:end], where.right[begin:end], total[begin:end])
        if len(kept):
            places += [np.column_stack([left, right]).ravel(), np.full(1, math.nan)]
            points += [np.repeat(kept + begin, 2), np.zeros(1, dtype=np.int64)]
    return np.concatenate(places)[:-1], np.concatenate(points)[:-1]


@lru_cache(maxsize=64)
def _area(name: str, quarters: bytes) -> Band:
    """Return the area of a category; the very same object for the same points, which are whole quarters of a pixel."""
    return Band(name, np.frombuffer(quarters) / 4, width=1.2, **area_look(name))


def _add_peaks(
    panel: PanelBuilder, axes: Axes, total: Numbers, where: StatementLayout, numbers: list[int | None]
) -> None:
    """Put its number over each update, and a mark on its peak; with its bytes when there are several."""
    places: list[float] = []
    for at, ((left, right), (begin, end), number) in enumerate(zip(where.updates, where.points, numbers, strict=True)):
        a, b = axes.left + left, axes.left + right
        if number is not None:
            options = [text for text in (f"update {number:,}", f"{number:,}") if text_width(text, 11.0) <= b - a]
            panel.label(
                f"update {at}", [Spot(text, (a + b) / 2, axes.top + 7, "middle") for text in options], size=11.0
            )
        if end > begin and total[begin:end].max() > 0:
            high = begin + int(total[begin:end].argmax())
            x, y = axes.left + float(where.left[high] + where.right[high]) / 2, axes.y.at(float(total[high]))
            places += [x, y - 5]
            if len(where.updates) > 1:
                said = bytes_words(float(total[high]))
                half = text_width(said, 11.0) / 2 + 3  # clear of the neighbour's, and of the words at the axis
                inside = min(max(x, a + half), b - half)
                if inside >= a + half:
                    panel.label(f"peak {at}", [Spot(said, inside, y - 17, "middle")], size=11.0)
    if places:
        panel.add(Dots("peaks", tuple(places), shape="down", size=8.0, fill="ink"))


def _add_names(panel: PanelBuilder, axes: Axes, edges: Edges, where: StatementLayout) -> None:
    """Write each category beside its right end with a patch of its area; those that are gone by then above them."""
    stop, (begin, end) = where.updates[-1][1], where.points[-1]
    beside: dict[str, float] = {}
    per_byte = (axes.bottom - axes.top) / axes.y.high
    for name, (low, high) in edges.items():
        thick = (high - low)[begin:end] * per_byte
        if len(thick) and thick.max() >= 1.0:
            at = -1 if thick[-1] >= 1 else int(thick.argmax())
            beside[name] = float(low[begin:end][at] + high[begin:end][at]) / 2 * per_byte
    x = axes.left + stop + 5
    for name, up in spread_labels(beside, 15, axes.bottom - axes.top).items():
        y = axes.bottom - up
        said = shorten(name, panel.width - x - _PATCH - 6)
        if panel.label(f"name {name}", [Spot(said, x + _PATCH + 4, y)], role=text_role(name)):
            look = area_look(name)
            panel.add(make_box(f"patch {name}", x, y - _PATCH / 2, x + _PATCH, y + _PATCH / 2, width=1.0, **look))


def _add_levels(panel: PanelBuilder, axes: Axes, scene: Memory, levels: dict[str, float]) -> None:
    for name, value in levels.items():
        y = axes.y.at(value)
        said = f"{scene.capacity[0] if name == 'capacity' and scene.capacity else name} {bytes_words(value)}"
        line = (axes.left, y, axes.right, y)
        panel.add(Path(f"level {name}", line, stroke="ink", width=1.4, dash=_LEVELS[name][1], words=said))
        text = shorten(said, axes.right - axes.left - 8, 11.0)
        middle = (axes.left + axes.right) / 2
        across = ((axes.left + 4, "start"), (axes.right - 4, "end"), (middle, "middle"))
        spots = [Spot(text, x, y - 8 - up, anchor) for x, anchor in across for up in (0.0, -16.0, 14.0)]
        panel.label(f"level name {name}", spots, size=11.0)  # left out where it would cover an area


def _covered(axes: Axes, total: Numbers, where: StatementLayout) -> list[Box]:
    """Return boxes that hold all that is drawn of the areas, a few pixels wide each."""
    columns = max(int((axes.right - axes.left) / _COLUMN), 1)
    first = np.clip((where.left / _COLUMN).astype(int), 0, columns)
    last = np.clip((where.right / _COLUMN).astype(int), 0, columns)
    tops = np.zeros(columns + 1)
    for begin, end in where.points:
        for ends in (first, last):
            np.maximum.at(tops, ends[begin:end], total[begin:end])
        for at in np.flatnonzero(last[begin:end] - first[begin:end] > 1) + begin:
            tops[first[at] : last[at]] = np.maximum(tops[first[at] : last[at]], total[at])
    ys = axes.y.place(tops)
    lefts = axes.left + _COLUMN * np.arange(columns + 1)
    return [Box(x, y, x + _COLUMN, axes.bottom) for x, y in zip(lefts.tolist(), ys.tolist(), strict=True)]


def _add_words(
    panel: PanelBuilder, scene: Memory, total: Numbers, newest: tuple[int, int], far: str, drawn: Collection[str]
) -> str:
    """Say the newest peak and its cause, how it stands against the card, and what else is to be known."""
    reserved = scene.reserved is not None and "reserved" not in drawn
    notes = [f"reserved {bytes_words(scene.reserved or 0)}" if reserved else "", scene.note]
    panel.corner(" \u00b7 ".join(note for note in notes if note))
    begin, end = newest
    peak = float(total[begin:end].max()) if end > begin else 0.0
    said = ""
    if peak > 0 and not scene.updates:  # no update was watched: what is there between two of them is no peak
        said = f"{bytes_words(peak)} at rest, between two updates"
        panel.label("cause", [Spot(said, MARGIN, _CAUSE_Y)])
    elif peak > 0:
        point = begin + int(total[begin:end].argmax())
        ends = bounds(scene.starts, len(scene.statements), len(total))
        at = int(np.searchsorted(ends, point, side="right")) - 1
        statement = scene.statements[min(max(at, 0), len(scene.statements) - 1)]
        module = scene.modules[point] if point < len(scene.modules) else ""
        whole = f"peak {bytes_words(peak)} {peak_location(statement, module)}"
        cuts = (module, *(f"\u2026{module[at:]}" for at in range(2, len(module), 2)), "")
        options = (f"\u25bc peak {bytes_words(peak)} {peak_location(statement, cut)}" for cut in cuts)
        panel.label("cause", [Spot(text, MARGIN, _CAUSE_Y) for text in options])
        said = whole[0].upper() + whole[1:]
    if far:
        panel.label("card", [Spot(shorten(far, panel.width - 2 * MARGIN), MARGIN, _CAUSE_Y + _ROW)])
    return said


def _add_statements(
    panel: PanelBuilder, axes: Axes, scene: Memory, edges: Edges, ends: list[int], where: StatementLayout
) -> None:
    """Add an empty area behind each statement, with what it holds at its highest moment in words."""
    total = edges["other"][1]
    names = tuple(edges)
    numbers, update = dict(scene.updates), 0
    if not len(total):
        return
    wide = [right - left >= _VISIBLE and ends[at] < ends[at + 1] for at, (left, right) in enumerate(where.statements)]
    highest = [a + int(total[a:b].argmax()) if shown else 0 for (a, b), shown in zip(pairwise(ends), wide, strict=True)]
    held = np.array([high[highest] - low[highest] for low, high in edges.values()]).T.tolist()
    for at, (left, right) in enumerate(where.statements):
        update = numbers.get(at, update)
        if not wide[at]:
            continue
        words = statement_text(scene.statements[at], update, names, tuple(held[at]))
        box = axes.left + left, axes.top, axes.left + right, axes.bottom
        panel.add(make_box(f"at {at}", *box, fill="paper", words=words))


@lru_cache(maxsize=4096)
def statement_text(statement: str, update: int, names: tuple[str, ...], held: tuple[float, ...]) -> str:
    """Say what a statement holds: ``backward of update 41: weights 2 KiB, activations 1.2 MiB``."""
    parts = [f"{name} {bytes_words(size)}" for name, size in zip(names, held, strict=True) if size > 0]
    of = f" of update {update:,}" if update else ""
    return f"{statement}{of}: {', '.join(parts) or 'nothing'}"


def _moved(edges: Edges, ends: list[int]) -> list[bool]:
    """Say of each statement whether any byte moved while it ran."""
    tops = np.array([high for _, high in edges.values()])
    changed = (np.diff(np.diff(tops, axis=0, prepend=0.0), axis=1) != 0).any(axis=0)
    changes = np.concatenate([[0, 0], np.cumsum(changed)]).tolist() if ends[-1] else [0]
    return [b > a and (a == 0 or changes[b] > changes[a]) for a, b in pairwise(ends)]

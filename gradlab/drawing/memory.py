"""Bytes by category over the last updates, statement by statement, the peak and its cause named."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from ..formatting import bytes_text
from ..scenes import Memory, peak_location, share_of_gpu
from .limits import Numbers, from_zero, numbers
from .marks import AXES_EDGE, Area, Axes, Axis, Band, Dots, Drawing, Key, Line, Mark, Text
from .statements import StatementLayout, keep_recent, layout_statements, statement_axis

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
_LEVELS = {"capacity": (2.0, "dashdot"), "allocated": (1.5, "dashed"), "reserved": (1.5, "dotted")}
"""How many times the peak a level is drawn up to, while a higher one is said in words; and its dashes."""
_ONE, _SEVERAL = 1.15, 1.3  # times the peak: above it is the number of its update, and of several its bytes
_THIN = 0.007  # of the axis: a category that is nowhere thicker has no name
_NOTHING = "No memory was watched yet"

Edges = dict[str, tuple[Numbers, Numbers]]


def stacked(categories: Mapping[str, Iterable[float]], count: int, above: Iterable[str] = ()) -> Edges:
    """Return the lower and the upper edge of each category at ``count`` points; what is missing counts as 0."""
    rows = {name: row for row, name in enumerate((*_ROLES, *above), 1)}
    heights = np.zeros((len(rows) + 1, count))
    for name, values in categories.items():
        sizes = np.clip(np.nan_to_num(numbers(values), posinf=0.0, neginf=0.0)[:count], 0, _LARGEST)
        heights[rows.get(name, rows["other"]), : len(sizes)] += sizes
    edges = np.cumsum(heights, axis=0)
    return {name: (edges[row - 1], edges[row]) for name, row in rows.items()}


def area_look(name: str) -> dict[str, Any]:
    """Return how the area of a category is drawn, as fields of a Band, an Area or a Key."""
    role, hatch = _LOOKS[name]
    strength = 50 if role != "grey" else 25 if hatch else 40
    return {"fill": f"{role}/{strength}", "stroke": role if role != "grey" else "grey/70", "hatch": hatch}


def text_role(name: str) -> str:
    """Return the role of the category's name: dark enough to read on paper and on its own area."""
    return f"{_LOOKS[name][0]}-text"


def category_name(name: str, texts: tuple[str, ...], y: float) -> Text:
    """Return the name of a category for the right of the axes, with a patch of its area."""
    return Text(
        f"name {name}", texts, y=y, where="margin", role=text_role(name), swatch=Key((name,), **area_look(name))
    )


def draw_memory(scene: Memory) -> Drawing:
    """Stack the categories, mark the peak of each update, and say what the newest one comes from."""
    scene = keep_recent(scene)
    if not scene.statements:
        return Drawing("memory", (), (Axes(Axis(ticks="none"), Axis(ticks="bytes")),), scene.note or _NOTHING)
    edges = stacked(scene.categories, max(map(len, scene.categories.values()), default=0))
    total = edges["other"][1]
    where = layout_statements(scene, np.array([high for _, high in edges.values()]))
    last, peak = where.updates[-1][1], float(total.max(initial=0.0))
    newest = float(total[last].max(initial=0.0))
    amounts = (scene.capacity[1] if scene.capacity else 0, scene.allocated or 0, scene.reserved or 0)
    sizes = zip(_LEVELS, amounts, strict=True)
    levels = {name: float(size) for name, size in sizes if 0 < size <= _LEVELS[name][0] * peak}
    room = peak * (_SEVERAL if len(where.updates) > 1 else _ONE)
    y = Axis(0.0, from_zero(max(room, *(size * 1.15 for size in levels.values()), 0.0)), ticks="bytes")
    marks = [*_columns(scene, edges, where), *_bands(edges, where), *_peaks(scene, total, where, y.high)]
    for name, size in levels.items():
        words = f"{scene.capacity[0] if name == 'capacity' and scene.capacity else name} {bytes_text(size)}"
        marks.append(Line(f"level {name}", (-AXES_EDGE, size, AXES_EDGE, size), "ink", 1.4, _LEVELS[name][1], words))
        look: dict[str, Any] = {"of": f"level {name}", "where": "beside", "size": 11.0, "clear": True}
        marks.append(Text(f"level name {name}", (words,), **look))
    marks += _names({name: (low[last], high[last]) for name, (low, high) in edges.items()}, _THIN * y.high)
    causes, far = _causes(scene, where, last.start + int(total[last].argmax()), newest) if newest > 0 else (), ""
    if scene.capacity and newest > 0 and ("capacity" not in levels or newest > scene.capacity[1]):
        far = share_of_gpu(*scene.capacity, newest)
    reserved = f"reserved {bytes_text(scene.reserved)}" if scene.reserved and "reserved" not in levels else ""
    corner = [part for part in (reserved, scene.note) if part]
    cause = causes[0].removeprefix("\u25bc ") if causes else ""
    words = ". ".join(part for part in (cause[:1].upper() + cause[1:], far, scene.note) if part)
    return Drawing(
        "memory",
        marks,
        (Axes(statement_axis(scene.statements, where), y),),
        words or _NOTHING,
        corner=(" \u00b7 ".join(corner), *corner[1:]) if corner else (),
        notes=tuple(texts for texts in (causes, (far,)) if any(texts)),
    )


def _columns(scene: Memory, edges: Edges, where: StatementLayout) -> list[Mark]:
    """Return an empty area behind each statement: ``backward: weights 2 KiB, activations 1.2 MiB``."""
    total = edges["other"][1]
    columns: list[Mark] = []
    for number, (statement, (begin, end)) in enumerate(zip(scene.statements, pairwise(where.ends), strict=True)):
        if begin < end:
            high = begin + int(total[begin:end].argmax())
            sizes = {name: float(upper[high] - lower[high]) for name, (lower, upper) in edges.items()}
            parts = [f"{name} {bytes_text(size)}" for name, size in sizes.items() if size > 0]
            words = f"{statement}: {', '.join(parts) or 'nothing'}"
            a, b = where.statements[number]
            columns.append(
                Area(f"at {number}", (a, -AXES_EDGE, a, AXES_EDGE, b, AXES_EDGE, b, -AXES_EDGE), "paper", words=words)
            )
    return columns


def _bands(edges: Edges, where: StatementLayout) -> list[Mark]:
    """Return a Band for each category, with steps from point to point; nothing where there are no bytes of it."""
    x, points = where.steps(edges["other"][1])
    bands: list[Mark] = []
    for name, (low, high) in edges.items():
        triples = np.stack([np.where(high[points] > low[points], x, np.nan), low[points], high[points]], -1)
        bands.append(Band(name, triples.ravel(), width=1.2, **area_look(name)))
    for number, (update, _) in enumerate(where.updates[1:]):
        middle = (where.statements[update.start][0] + where.statements[update.start - 1][1]) / 2
        bands.append(Line(f"divider {number}", (middle, -AXES_EDGE, middle, AXES_EDGE), "faint"))
    return bands


def _peaks(scene: Memory, total: Numbers, where: StatementLayout, limit: float) -> list[Mark]:
    """Return the number of each update, a mark on its peak, and the bytes of this when there are several."""
    numbers, texts, tips = dict(scene.updates), list[Mark](), list[float]()
    for update, (statements, points) in reversed(list(enumerate(where.updates if numbers else ()))):  # newest first
        low, high = where.statements[statements.start][0], where.statements[statements.stop - 1][1]
        if (number := numbers.get(statements.start)) is not None:
            name = (f"update {number:,}", f"{number:,}")
            texts.append(Text(f"update {update}", name, (low + high) / 2, AXES_EDGE, where="center", size=11.0))
        if total[points].max(initial=0.0) > 0:
            point = points.start + int(total[points].argmax())
            x = float(where.left[point] + where.right[point]) / 2
            y = float(total[point]) + limit / 30  # its tip touches the area
            tips += [x, y]
            if len(where.updates) > 1:
                half = where.wide / 10  # of the words, which stay within their update
                x = min(max(x, low + half), max(high - half, low))
                texts.append(Text(f"peak {update}", (bytes_text(total[point]),), x, y, where="above", size=11.0))
    return [Dots("peaks", tuple(tips), "down", 8.0, "ink"), *texts] if tips else texts


def _names(edges: Edges, thin: float) -> list[Mark]:
    """Name each category beside its right end; those that are gone by then, where they are thickest."""
    names: list[Mark] = []
    for name, (low, high) in edges.items():
        thick = high - low
        if thick.max(initial=0.0) > thin:
            point = -1 if thick[-1] > thin else int(thick.argmax())
            names.append(category_name(name, (name,), float(low[point] + high[point]) / 2))
    return names


def _causes(scene: Memory, where: StatementLayout, point: int, size: float) -> tuple[str, ...]:
    """Say the newest peak and what it comes from, with the name of the module ever shorter."""
    if not scene.updates:  # no update was watched: what is there between two of them is no peak
        return (f"{bytes_text(size)} at rest, between two updates",)
    statement = scene.statements[bisect_right(where.ends, point) - 1]
    module = scene.modules[point] if point < len(scene.modules) else ""
    parts = module.split(".")
    cuts = dict.fromkeys([module, *(f"\u2026{'.'.join(parts[first:])}" for first in range(1, len(parts))), ""])
    return tuple(f"\u25bc peak {bytes_text(size)} {peak_location(statement, cut)}" for cut in cuts)

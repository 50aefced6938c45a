"""The loss over two weights as contours, the way that the weights went, and the loss along the step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..formatting import short
from ..scenes import Contours, Landscape, Slice
from .axes import Axes, Numbers, Side, around, make_axes, numbers, panel_axes, value_limits
from .builder import PanelBuilder, make_box
from .labels import Placer, Spot, spots_around, text_width
from .marks import Dots, Drag, Drawing, Mark, Path, Readout

LEVELS = 9
_DARKEST, _PALEST = 78, 31  # strength of the lowest and the highest contour, per cent of grey
_SPOTS = 24  # places on a contour at which its loss may be written


@dataclass(frozen=True, eq=False)
class Surface:
    """A loss surface in units of the weights."""

    x: tuple[float, float]
    y: tuple[float, float]
    """Smallest and largest weight."""
    levels: tuple[tuple[float, Numbers], ...] = ()
    """Each loss with the points of its contour, n x 2; a row of NaN between two pieces."""
    lowest: tuple[float, float] | None = None
    """Where the loss is least, if that is not at the edge."""


@lru_cache(maxsize=8)
def surface_of(contours: Contours) -> Surface:
    """Return the contours of a scene; the same object for the same scene's contours."""
    from contourpy import LineType, contour_generator  # only models of two weights have contours

    x, y, loss = numbers(contours.x), numbers(contours.y), np.array(contours.loss, dtype=np.float64)
    spans = _span(x), _span(y)
    if loss.ndim != 2 or min(loss.shape) < 2 or loss.shape != (len(y), len(x)):
        return Surface(*spans)
    finite = np.isfinite(loss)
    if finite.sum() < 4 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return Surface(*spans)
    masked = np.ma.masked_array(np.clip(np.where(finite, loss, 0.0), -1e300, 1e300), ~finite)
    low, high = float(masked.min()), float(masked.max())
    if not high - low > 1e-9 * max(abs(low), abs(high)):
        return Surface(*spans)
    generator = contour_generator(x, y, masked, name="serial", line_type=LineType.ChunkCombinedNan)
    # squares, so that a bowl gets rings at even distances
    heights = (low + (high - low) * (np.arange(1, LEVELS + 1) / (LEVELS + 0.5)) ** 2).tolist()
    levels = tuple((height, lines[0]) for height in heights if (lines := generator.lines(height)[0])[0] is not None)
    row, column = (int(at) for at in np.unravel_index(int(masked.argmin()), loss.shape))
    inside = 0 < row < len(y) - 1 and 0 < column < len(x) - 1
    return Surface(*spans, levels, (float(x[column]), float(y[row])) if inside else None)


@lru_cache(maxsize=64)
def _marks(surface: Surface, axes: Axes, size: tuple[float, float], named: bool) -> tuple[tuple[Mark, ...], Placer]:
    """Return the contours as marks, with their words where they are ``named``, and the placer with what these cover."""
    marks: list[Mark] = []
    for number, (loss, points) in enumerate(surface.levels):
        strength = round(_DARKEST - (_DARKEST - _PALEST) * number / (LEVELS - 1))
        places = axes.places(points[:, 0], points[:, 1])
        marks.append(
            Path(f"contour {number}", places, stroke=f"grey/{strength}", width=1.2, words=f"loss {short(loss)}")
        )
    if surface.lowest:
        at = np.array([axes.x.at(surface.lowest[0]), axes.y.at(surface.lowest[1])])
        marks.append(Dots("lowest", at, shape="plus", size=10.0, stroke="grey", width=1.5, words="the smallest loss"))
    placer = Placer(*size)
    placer.take(axes.boxes)
    for number, (loss, points) in list(enumerate(surface.levels))[1::3] if named else ():
        text = placer.place(
            f"level {number}", _level_spots(axes, points, short(loss)), size=11.0, role="grey", backed=True
        )
        marks += [text] if text else []
    return tuple(marks), placer


def _level_spots(axes: Axes, points: Numbers, text: str) -> list[Spot]:
    places = axes.places(points[:, 0], points[:, 1]).reshape(-1, 2)
    half = text_width(text, 11.0) / 2 + 3
    inside = np.isfinite(places).all(axis=1)
    inside &= (places[:, 0] > axes.left + half) & (places[:, 0] < axes.right - half)
    inside &= (places[:, 1] > axes.top + 9) & (places[:, 1] < axes.bottom - 9)
    places = places[inside]
    places = places[:: max(1, len(places) // _SPOTS)]
    # where the contour is steepest on paper its word hides least of it: at the left and the right of a ring
    return [Spot(text, x, y, "middle") for x, y in places[np.argsort(places[:, 0])].tolist()]


def add_surface(
    panel: PanelBuilder, contours: Contours, points: Numbers, margin: float, *, named: bool = False
) -> Axes:
    """Add the contours with axes that also hold ``points`` (n x 2, the last one where the weights are); return these.

    ``margin`` CSS pixels are kept free on the right. Arrows must look perpendicular to contours, so a unit is as long
    along both weights, unless that would squeeze the picture to a ribbon.
    """
    surface = surface_of(contours)
    x, far_x = _limits(surface.x, points[:, 0])
    y, far_y = _limits(surface.y, points[:, 1])
    left, top, right, bottom = 54.0, 30.0, panel.width - margin, panel.height - 38.0
    shape = (x[1] - x[0]) / (y[1] - y[0]) * (bottom - top) / (right - left)
    if 0.2 < shape < 1:
        spare = (right - left) * (1 - shape)
        left, right = round(left + spare * 0.35), round(right - spare * 0.65)
    elif 1 <= shape < 5:
        spare = (bottom - top) * (1 - 1 / shape)
        top, bottom = round(top + spare / 2), round(bottom - spare / 2)
    size = (panel.width, panel.height)
    axes = make_axes(
        size, left, top, right, bottom, Side(*x, words=contours.names[0]), Side(*y, words=contours.names[1])
    )
    marks, placer = _marks(surface, axes, size, named)
    panel.add(*axes.marks, *marks)
    panel.placer.take(placer.boxes)
    if far_x or far_y:
        _add_outside(panel, axes, points[-1].tolist())
    return axes


def _limits(span: tuple[float, float], values: Numbers) -> tuple[tuple[float, float], bool]:
    """Return limits that hold a span of weights and the values near it, and whether a value lies far outside."""
    low, high = span
    wide = high - low
    near = values[(values > low - 3 * wide) & (values < high + 3 * wide)]
    lowest, highest = float(near.min(initial=low)), float(near.max(initial=high))
    limits = span if lowest >= low and highest <= high else around(lowest, highest)
    return limits, len(near) < len(values)


def _add_outside(panel: PanelBuilder, axes: Axes, where: Sequence[float]) -> None:
    said = f"weights at {short(where[0])}, {short(where[1])}", "outside this picture"
    x, y = (axes.left + axes.right) / 2, axes.top + 16
    half = max(text_width(line) for line in said) / 2 + 8
    panel.add(make_box("outside frame", x - half, y - 12, x + half, y + 28, fill="paper", stroke="ink", dash="dashed"))
    for at, line in enumerate(said):
        panel.label(f"outside {at}", [Spot(line, x, y + 16 * at, "middle")])


def _span(edge: Numbers) -> tuple[float, float]:
    finite = edge[np.isfinite(edge)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if math.isclose(low, high):
        low, high = low - max(abs(low), 1.0) / 2, high + max(abs(high), 1.0) / 2
    return low, high


AGES = ("weights/20", "weights/45", "weights")
"""Roles of the oldest, the middle and the newest third of the path: what is old must not cover the contours."""
_DOTTED = 60  # up to so many points of the path are dots too
_AROUND = ((10, -10), (-10, -10), (10, 10), (-10, 10), (0, -16), (0, 16), (20, 0), (-20, 0))  # where its word may be


def draw_landscape(scene: Landscape, width: int, height: int) -> Drawing:
    """Draw contours with the path; a ring where it began, a dot where it is."""
    panel = PanelBuilder("path of the weights", width, height)
    path = numbers(scene.path).reshape(-1, 2)
    axes = add_surface(panel, scene.contours, path, 14.0, named=True)
    places = axes.places(path[:, 0], path[:, 1]).reshape(-1, 2)
    places = places[np.isfinite(places).all(axis=1)]
    cuts = thirds(len(places))
    readout = Readout("weights about {x}, {y}", axes.x.axis, axes.y.axis)
    for number, role in enumerate(AGES):
        part = thin(places[cuts[number] : cuts[number + 1] + 1])
        panel.add(Path(f"path {number}", part.ravel(), stroke=role, width=1.8, readout=readout))
        if len(places) <= _DOTTED:
            panel.add(Dots(f"steps {number}", part.ravel(), size=3.5, fill=role))
    if len(places):
        _add_ends(panel, axes, path, places)
    return panel.finish(_words(path))


def thirds(count: int) -> tuple[int, int, int, int]:
    """Cut so many points in about three thirds, at places that stay the same for a while as points are added."""
    step = max(1, 2 ** (max(count, 1) // 3).bit_length() // 16)
    return 0, count // 3 // step * step, 2 * count // 3 // step * step, count


def thin(places: Numbers) -> Numbers:
    """Leave out points that lie where the one before them lies, to a quarter of a pixel."""
    if len(places) < 2:
        return places
    quarters = np.rint(places * 4)
    return places[np.concatenate([[True], (quarters[1:] != quarters[:-1]).any(axis=1)])]


def _add_ends(panel: PanelBuilder, axes: Axes, path: Numbers, places: Numbers) -> None:
    drag = Drag("weights", axes.x.axis, axes.y.axis)
    if len(path) > 1:
        panel.add(Dots("start", places[0], shape="ring", size=9.0, fill="paper", stroke="weights", width=1.8))
    look: dict[str, Any] = {"fill": "weights", "stroke": "paper", "width": 1.5, "moves": True}
    panel.add(Dots("now", places[-1], size=11.0, words="drag to another start", drag=drag, **look))
    for word, place in (("now", places[-1]), ("start", places[0]))[: len(path)]:
        x, y = place.tolist()
        spots = spots_around(word, x, y, _AROUND)
        panel.label(f"{word} word", spots, role="weights-text", bold=True, backed=True)


def _words(path: Numbers) -> str:
    if not len(path):
        return "The weights have not moved yet."
    (x0, y0), (x1, y1) = path[0].tolist(), path[-1].tolist()
    if len(path) == 1:
        return f"The weights are at {short(x1)}, {short(y1)}."
    return f"The weights went from {short(x0)}, {short(y0)} to {short(x1)}, {short(y1)}, on contours of the loss."


_LOG_FROM = 1000.0
_BESIDE = ((10, -13), (-10, -13), (10, 14), (-10, 14), (10, -30), (-10, -30))  # where the words of a point may be


def draw_slice(scene: Slice, width: int, height: int) -> Drawing:
    """Draw the loss at ``weights - t * .grad``; marks where the weights are and where plain SGD would land."""
    panel = PanelBuilder("loss along \u2212.grad", width, height)
    t, loss = numbers(scene.t), numbers(scene.loss)
    kept = np.isfinite(t) & np.isfinite(loss)
    t, loss = t[kept], loss[kept]
    order = np.argsort(t, kind="stable")
    t, loss = t[order], loss[order]
    low, high, log = value_limits(loss, 1.2, log_from=_LOG_FROM)
    lr = scene.lr if math.isfinite(scene.lr) else 0.0
    across = (min(float(t[0]), 0.0, lr), max(float(t[-1]), 0.0, lr)) if len(t) else (0.0, 1.0)
    if across[1] - across[0] <= 1e-12 * max(map(abs, across)):
        across = around(*across)
    along = Side(*across, words="t  in  weights \u2212 t \u00b7 .grad")
    axes = panel_axes(width, height, along, Side(low, high, log))
    panel.axes(axes)
    readout = Readout("t about {x}: loss {y}", axes.x.axis, axes.y.axis)
    panel.add(Path("loss", axes.places(t, loss), stroke="loss", width=1.8, readout=readout))
    at_lr = f"lr {short(scene.lr)}"
    if len(t):
        line = (axes.x.at(lr), axes.bottom, axes.x.at(lr), axes.top)
        panel.add(Path("lr", line, stroke="grey", width=1.2, dash="dashed", words=at_lr))
    found: list[tuple[str, str, tuple[float, float]]] = []
    shown: list[tuple[str, float, str, str, dict[str, Any]]] = [
        ("now", 0.0, "now", "where the weights are", {"shape": "circle", "fill": "weights", "stroke": "paper"}),
        ("there", lr, f"{at_lr}:", "where plain SGD lands", {"shape": "diamond", "fill": "gradients", "stroke": "ink"}),
    ]
    for id, at, word, meaning, look in shown:
        if len(t) and t[0] <= at <= t[-1]:
            value = float(np.interp(at, t, loss))
            place = axes.x.at(at), axes.y.at(value)
            panel.add(Dots(id, place, size=10.0, words=f"{meaning}: loss {short(value)}", **look))
            found.append((id, f"{word} {short(value)}", place))
    for id, said, place in found:
        panel.label(f"{id} word", spots_around(said, *place, _BESIDE), bold=True, backed=True)
    told = "; ".join(said for _, said, _ in found)
    said = f"The loss of this batch along minus .grad: {told}." if told else "There is no loss to show yet."
    return panel.finish(said)

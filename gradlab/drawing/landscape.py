"""The loss over two weights as contours, and the path of the weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..formatting import short
from ..scenes import Contours
from .limits import Numbers, numbers
from .marks import Axes, Axis, Dots, Line, Mark, Text

LEVELS = 9
_DARKEST, _PALEST = 78, 31  # strength of grey in the lowest and in the highest contour, in per cent


class Surface(NamedTuple):
    """The contours of a loss surface over two weights."""

    x: tuple[float, float]  # smallest and largest value of the first weight
    y: tuple[float, float]  # smallest and largest value of the second weight
    levels: tuple[tuple[float, Numbers], ...] = ()  # loss of each contour, and its points, with NaN between pieces
    lowest: tuple[float, float] | None = None  # weights with the smallest loss, or None if unknown or at the edge


@lru_cache(maxsize=8)
def surface_of(contours: Contours) -> Surface:
    """Return the surface of ``contours`` (cached), without levels if the grid is unusable or the loss is constant."""
    from contourpy import LineType, contour_generator  # needed only for models with two weights

    x, y, loss = numbers(contours.x), numbers(contours.y), np.array(contours.loss, dtype=np.float64)
    spans = _span(x), _span(y)
    finite = np.isfinite(loss)
    if loss.shape != (len(y), len(x)) or min(loss.shape) < 2 or finite.sum() < 4 or not np.isfinite([*x, *y]).all():
        return Surface(*spans)
    masked = np.ma.masked_array(np.clip(np.where(finite, loss, 0.0), -1e300, 1e300), ~finite)
    low, high = float(masked.min()), float(masked.max())
    if not high - low > 1e-9 * max(abs(low), abs(high)):
        return Surface(*spans)
    generator = contour_generator(x, y, masked, name="serial", line_type=LineType.ChunkCombinedNan)
    # levels grow quadratically, so that the rings of a bowl are evenly spaced
    heights = (low + (high - low) * (np.arange(1, LEVELS + 1) / (LEVELS + 0.5)) ** 2).tolist()
    levels = tuple((height, lines[0]) for height in heights if (lines := generator.lines(height)[0])[0] is not None)
    row, column = (int(index) for index in np.unravel_index(int(masked.argmin()), loss.shape))
    inside = 0 < row < len(y) - 1 and 0 < column < len(x) - 1
    return Surface(*spans, levels, (float(x[column]), float(y[row])) if inside else None)


def _span(edge: Numbers) -> tuple[float, float]:
    finite = edge[np.isfinite(edge)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if math.isclose(low, high):
        low, high = low - max(abs(low), 1.0) / 2, high + max(abs(high), 1.0) / 2
    return low, high


@lru_cache(maxsize=8)
def surface_marks(contours: Contours) -> tuple[Mark, ...]:
    """Return the contours and the lowest point as marks (cached); every third contour has a label."""
    surface = surface_of(contours)
    marks: list[Mark] = []
    for number, (loss, corners) in enumerate(surface.levels):
        strength = round(_DARKEST - (_DARKEST - _PALEST) * number / (LEVELS - 1))
        label = f"loss {short(loss)}"
        marks.append(Line(f"contour {number}", corners.ravel(), f"grey/{strength}", 1.2, words=label))
    if surface.lowest:
        marks.append(Dots("lowest", surface.lowest, "plus", 10.0, "", "grey", 1.5, "the smallest loss"))
    for number, (loss, _) in list(enumerate(surface.levels))[1::3]:
        style: dict[str, Any] = {"where": "on", "role": "grey", "size": 11.0, "backed": True, "clear": True}
        marks.append(Text(f"level {number}", (short(loss),), of=f"contour {number}", **style))
    return tuple(marks)


def surface_axes(contours: Contours, weights: Sequence[float]) -> tuple[Axes, str]:
    """Return the axes of contours, and a notice if ``weights`` are outside the axes, or "" if they are inside.

    Both axes have the same scale, so that arrows look perpendicular to contours, unless they would be too narrow.
    """
    surface = surface_of(contours)
    x, y = surface.x, surface.y
    far = not all(low <= weight <= high for weight, (low, high) in zip(weights, (x, y), strict=True))
    equal = "fit" if 0.2 < (x[1] - x[0]) / (y[1] - y[0]) < 5 else ""
    axes = Axes(Axis(*x, words=contours.names[0]), Axis(*y, words=contours.names[1]), equal)
    return axes, f"weights at {short(weights[0])}, {short(weights[1])}, outside this picture" if far else ""


_AGES = ("weights/20", "weights/45", "weights")
"""Roles of the oldest, middle and newest third of the path: older parts are paler, to keep contours visible."""
_MOST_DOTS = 60  # number of points above which the points of a path are not drawn as dots


def path_marks(path: Numbers, drag: str = "") -> tuple[list[Mark], list[Mark]]:
    """Return the marks of the path, and those in front of arrows: a dot at its end and, if ``drag`` is set, labels."""
    finite = path[np.isfinite(path).all(axis=1)]
    marks: list[Mark] = []
    third = len(finite) // 3
    step = max(1, 2 ** third.bit_length() // 16)  # cuts are multiples of the step, so that they rarely change
    cuts = 0, third // step * step, 2 * len(finite) // 3 // step * step, len(finite)
    for number, role in enumerate(_AGES):
        part = finite[cuts[number] : cuts[number + 1] + 1].ravel()
        marks.append(Line(f"path {number}", part, role, 1.8, readout="weights {x}, {y}"))
        if len(finite) <= _MOST_DOTS:
            marks.append(Dots(f"steps {number}", part, size=3.5, fill=role))
    front: list[Mark] = []
    if len(finite) > 1:
        marks.append(Dots("start", finite[0], "ring", 9.0, "paper", "weights", 1.8))
    if len(finite):
        label = "drag to another start" if drag else f"the weights: {short(finite[-1][0])}, {short(finite[-1][1])}"
        front.append(Dots("now", finite[-1], "circle", 11.0, "weights", "paper", 1.5, label, "", drag, moves=True))
    for index, word in ((-1, "now"), (0, "start"))[: len(finite) if drag else 0]:
        x, y = finite[index].tolist()
        live = "drag me" if word == "now" else ""
        front.append(Text(f"{word} word", (word,), x, y, role="weights-text", bold=True, backed=True, live=live))
    return marks, front

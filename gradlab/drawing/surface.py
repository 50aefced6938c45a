"""The loss over two weights: contours with their losses, drawn once for each Contours object."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from contourpy import LineType, contour_generator

from ..formatting import short
from ..scenes import Contours
from .axes import Axes, Side, make_axes
from .builder import PanelBuilder, make_box
from .labels import Placer, Spot
from .lettering import text_width
from .limits import Numbers, around, numbers
from .marks import Dots, Mark, Path

LEVELS = 9
_DARKEST, _PALEST = 78, 31  # strength of the lowest and the highest contour, per cent of grey
_SPOTS = 24  # places on a contour at which its loss may be written


class _Same:
    """A Contours object as a key of a cache: it holds lists, so it is known by what it is, not by what it holds."""

    def __init__(self, contours: Contours) -> None:
        self.contours = contours

    def __hash__(self) -> int:
        return id(self.contours)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.contours is self.contours


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


def surface_of(contours: Contours) -> Surface:
    """Return the contours of a scene; the same object for the same scene's contours."""
    return _surface(_Same(contours))


@lru_cache(maxsize=8)
def _surface(same: _Same) -> Surface:
    contours = same.contours
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

"""Plane: what the panels over two weights share: contours of the loss, kept in the background."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from ..formatting import short
from ..scenes import Contours
from .canvas import Canvas, SceneType, set_label
from .limits import Range, numbers
from .palette import GREY, INK
from .style import own_look

LEVELS = 9


class Plane(Canvas[SceneType]):
    """A panel whose background is the loss over two weights."""

    margin = 12.0
    """CSS pixels kept free on the right."""

    def build(self) -> None:
        """Make the axes; the contours come with the first scene."""
        self.axes = self.add_axes(left=56, right=self.margin)
        self._contours: Contours | None = None
        self._lines: list[Any] = []
        self._x, self._y = Range(), Range()
        frame = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": INK, "linestyle": "dashed"}
        (self._outside,) = self.labels(self.axes, 1, ha="center", va="top", bbox=frame)
        self._outside.set(transform=self.axes.transAxes, zorder=100)

    def surface(self, contours: Contours, points: Iterable[tuple[float, float]]) -> None:
        """Show these contours, and as much around them as the points need."""
        some = numbers([edge for point in points for edge in point]).reshape(-1, 2)
        if contours is not self._contours:
            with own_look():
                self._draw(contours)
            self._x, self._y = Range(), Range()
        far = False
        for axis, range_, span, of in (
            ("x", self._x, self._grid[0], some[:, 0]),
            ("y", self._y, self._grid[1], some[:, 1]),
        ):
            low, high = span
            wide = high - low
            near = of[(of > low - 3 * wide) & (of < high + 3 * wide)]
            far |= len(near) < len(of)
            # exactly the contours as long as everything lies on them; once grown, the view stays
            inside = low <= near.min(initial=low) and near.max(initial=high) <= high
            limits = (low, high) if inside and range_.limits is None else range_.fit([low, high, *near])
            self.set_limits(self.axes, **{axis: limits})
        # Arrows must look perpendicular to contours, unless that would squeeze the picture to a ribbon.
        box = self.axes.get_position(original=True)
        (left, right), (bottom, top) = self.axes.get_xlim(), self.axes.get_ylim()
        shape = (right - left) / (top - bottom) * (box.height * self.height) / (box.width * self.width)
        aspect: Literal["equal", "auto"] = "equal" if 0.5 < shape < 2 else "auto"
        if self.axes.get_aspect() != (1.0 if aspect == "equal" else "auto"):
            self.axes.set_aspect(aspect, adjustable="box", anchor="W")
            self.refresh()
        self.axes.apply_aspect()
        where = f"weights at {short(some[-1, 0])}, {short(some[-1, 1])}:\noutside this picture" if far else ""
        set_label(self._outside, 0.5, 0.95, where)

    def _draw(self, contours: Contours) -> None:
        for lines in self._lines:
            lines.remove()
        self._lines = []
        self._contours = contours
        x, y, loss = numbers(contours.x), numbers(contours.y), np.array(contours.loss, dtype=np.float64)
        self._grid = tuple(_span(edge) for edge in (x, y))
        self.axes.set_xlabel(contours.names[0], labelpad=2, parse_math=False)
        self.axes.set_ylabel(contours.names[1], labelpad=2, parse_math=False)
        self.refresh()
        if loss.ndim != 2 or min(loss.shape) < 2 or loss.shape != (len(y), len(x)):
            return
        loss = np.ma.masked_invalid(np.clip(loss, -1e300, 1e300))
        if loss.count() < 4 or not np.isfinite(np.concatenate([x, y])).all():
            return
        low, high = float(loss.min()), float(loss.max())
        if not high - low > 1e-9 * max(abs(low), abs(high)):
            return
        # squares, so that a bowl gets rings at even distances
        levels = low + (high - low) * (np.arange(1, LEVELS + 1) / (LEVELS + 0.5)) ** 2
        shades = [str(shade) for shade in np.linspace(0.55, 0.82, LEVELS)]
        lines = self.axes.contour(x, y, loss, levels=levels, colors=shades, linewidths=1.2)
        self._lines.append(lines)
        row, column = np.unravel_index(int(loss.argmin()), loss.shape)
        if 0 < row < len(y) - 1 and 0 < column < len(x) - 1:
            self._lines += self.axes.plot(x[column], y[row], marker="+", color=GREY, markersize=9, markeredgewidth=1.5)
        self.level_words(lines)  # matplotlib removes them with their contours

    def level_words(self, lines: Any) -> list[Any]:
        """Write the loss on some contours; a panel that is full already leaves this out."""
        return []


def _span(edge: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float]:
    finite = edge[np.isfinite(edge)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if math.isclose(low, high):
        low, high = low - max(abs(low), 1.0) / 2, high + max(abs(high), 1.0) / 2
    return low, high

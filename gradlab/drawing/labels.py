"""Placement of labels in still pictures: within the panel, without overlaps, where they hide little of the marks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from matplotlib.axes import Axes as Plot
from matplotlib.path import Path as Outline

from .fonts import fitting, text_width
from .marks import Arrow, Dots, Mark, Text
from .palette import colour
from .plots import Places, Sheet, text_box

_GAP_PX, _SAMPLE_PX, _MARGIN_ROW_PX = 2.0, 7.0, 15.0  # distances of labels, points on a line, and margin rows
_HINTING_PX = 3.0  # CSS pixels by which hinting may widen a label
_TOP_ROWS, _TOP_ROW_PX = 4, 17.0  # number and height of the rows for labels below the upper edge of the axes
_COST_LATER, _COST_SHORTER, _COST_OUTSIDE = 0.35, 3.0, 4.0  # costs of a later spot, a shorter form, and leaving axes
_STEPS: dict[str, Sequence[tuple[float, float]]] = {
    "right": [(10, 0)],
    "left": [(-10, 0)],
    "above": [(0, -13), (0, -24)],
    "below": [(0, 13), (0, 28)],
    "center": [(0, 0)],
    "around": [(9, -11), (-9, -11), (9, 11), (-9, 11), (0, -16), (0, 16), (14, 0), (-14, 0), (12, -28), (-12, -28),
               (12, 28)],
}  # fmt: skip

Spot = tuple[float, float, str]
"""A label's x coordinate, the y coordinate of its middle (in CSS pixels), and its part at x, such as "left"."""


class Labels:
    """The labels of a panel, each written at the free position where it hides the least."""

    def __init__(self, sheet: Sheet, plots: Sequence[Plot], marks: Mapping[str, tuple[Mark, list[Places]]]) -> None:
        """Prepare to label the painted ``marks``, a dict from id to the mark and its lines and points in CSS pixels."""
        self._sheet, self._plots, self._marks = sheet, plots, marks
        parts = [(mark, piece) for mark, pieces in marks.values() for piece in pieces]
        self._arrows = [Outline(piece) for mark, piece in parts if isinstance(mark, Arrow)]
        obstacles = [np.zeros((0, 2)), *(piece for mark, piece in parts if isinstance(mark, Dots))]
        for mark, piece in parts:  # labels may hide fills and pale lines
            if not isinstance(mark, Dots) and getattr(mark, "stroke", "")[:5] not in ("", "grey/"):
                obstacles.append(_along(piece))
        self._obstacles = np.concatenate(obstacles)

    def write(self, texts: Sequence[Text], order: int) -> None:
        """Write each label that has a free position. Labels outside the right margin have the zorder ``order``."""
        self._place_margin([text for text in texts if text.where == "margin" and math.isfinite(text.y)])
        for mark in texts:
            if mark.where == "margin" or (best := self._best(mark)) is None:
                continue
            (x, y, anchor), text = best
            patch = {"boxstyle": "square,pad=0.1", "facecolor": colour("paper"), "edgecolor": "none", "alpha": 0.85}
            style: dict[str, Any] = {"size": mark.size, "role": mark.role, "bold": mark.bold, "zorder": order}
            self._sheet.write(x, y, text, anchor=anchor, bbox=patch if mark.backed else None, **style)

    def _best(self, mark: Text) -> tuple[Spot, str] | None:
        left, top, right, bottom = self._sheet.edges(self._plots[mark.axes])
        wide, names_arrow = self._sheet.width - _HINTING_PX, self._is_arrow(mark.of)
        limits = 0.0, 0.0, wide, self._sheet.height
        if names_arrow:
            limits = left + 3, 0.0, wide, bottom
        elif mark.where in ("top", "on", "beside"):
            limits = left + 3, top, min(right + 10, wide), bottom
        least, best = math.inf, None
        for form, text in enumerate(mark.texts):
            for number, spot in enumerate(self._spots(mark, text_width(text, mark.size, mark.bold))):
                x, y, anchor = spot
                box = text_box(x, y, text, mark.size, mark.bold, anchor)
                a, b, c, d = box.extents
                cost = _COST_LATER * number + _COST_SHORTER * form + _COST_OUTSIDE * (a < left or d > bottom)
                if not (cost < least and a >= limits[0] and b >= limits[1] and c <= limits[2] and d <= limits[3]):
                    continue
                others, near, far = self._sheet.text_boxes, a - _GAP_PX, c + _GAP_PX
                if any(near < o.x1 and o.x0 < far and b < o.y1 and o.y0 < d for o in others):
                    continue
                if names_arrow and any(arrow.intersects_bbox(box) for arrow in self._arrows):
                    continue
                inside = (self._obstacles > (a, b)) & (self._obstacles < (c, d))
                hidden = int(inside.all(axis=1).sum())
                if cost + hidden < least and not (mark.clear and hidden):
                    least, best = cost + hidden, (spot, text)
        return best

    def _is_arrow(self, id: str) -> bool:
        return id in self._marks and isinstance(self._marks[id][0], Arrow)

    def _spots(self, mark: Text, wide: float) -> list[Spot]:
        plot = self._plots[mark.axes]
        left, top, right, bottom = self._sheet.edges(plot)
        if mark.of:
            _, pieces = self._marks.get(mark.of, (None, []))
            places = np.concatenate([np.zeros((0, 2)), *pieces])
            if not len(places):
                return []
            if self._is_arrow(mark.of):
                return _aside(places)
            if mark.where != "on":
                return _beside(places, left, right, top, wide)
            inside = places[(places > (left, top)).all(axis=1) & (places < (right, bottom)).all(axis=1)]
            few = sorted(inside[:: max(1, len(inside) // 24)].tolist(), key=itemgetter(0))
            return [(x, y, "center") for x, y in few]
        x, y = self._sheet.places(plot, (mark.x, mark.y))[0].tolist()
        if mark.where == "top":
            rows = [top + (row + 0.5) * _TOP_ROW_PX for row in range(_TOP_ROWS)] if left - 1 <= x <= right + 1 else []
            fits = x + 5 + wide <= min(right + 10, self._sheet.width - _HINTING_PX)
            return [(x + 5, y, "left") if fits else (x - 5, y, "right") for y in rows]
        steps = [step for side in mark.where.split() for step in _STEPS[side]]
        return [(x + a, y + b, "left" if a > 0 else "right" if a < 0 else "center") for a, b in steps]

    def _place_margin(self, texts: Sequence[Text]) -> None:
        """Write labels in the right margin, each near its y coordinate without overlap; omit those that do not fit."""
        plot, sheet = self._plots[0], self._sheet
        _, top, right, bottom = sheet.edges(plot)
        texts = texts[: int((bottom - top - 4) / _MARGIN_ROW_PX) + 1]
        sides = [(1.0, min(max(text.y, plot.get_ylim()[0]), plot.get_ylim()[1])) for text in texts]
        heights = sheet.places(plot, sides)[:, 1].tolist()
        order = sorted(range(len(texts)), key=lambda number: heights[number])
        least = top + 4
        for number in order:
            heights[number] = max(heights[number], least)
            least = heights[number] + _MARGIN_ROW_PX
        for number in reversed(order):
            heights[number] = min(heights[number], bottom)
            bottom = heights[number] - _MARGIN_ROW_PX
        for mark, y in zip(texts, heights, strict=True):
            x = right + 8 + 13 * (mark.swatch is not None)
            text = fitting(mark.texts, sheet.width - x - 2, mark.size, bold=mark.bold)
            if mark.swatch is not None:
                sheet.add_swatch(mark.swatch, x - 13, y, 9.0, 9.0)
            sheet.write(x, y, text, size=mark.size, role=mark.role, bold=mark.bold)


def _along(places: Places) -> Places:
    """Return points along a line, close enough together to detect a label that hides a part of the line."""
    steps = np.hypot(*np.diff(places, axis=0).T) / _SAMPLE_PX
    counts = np.clip(np.ceil(steps), 1, 200).astype(int)
    pairs = zip(places[:-1], places[1:], counts.tolist(), strict=True)
    pieces = (np.linspace(end, start, count, endpoint=False) for start, end, count in pairs)
    return np.concatenate([places[:1], *pieces])


def _aside(corners: Places) -> list[Spot]:
    """Return positions for a label beside an arrow with these ``corners``, the nearest and most central first."""
    tail, head, thick = (corners[0] + corners[6]) / 2, corners[3], math.dist(corners[0], corners[6])
    across, down = np.array([tail[1] - head[1], head[0] - tail[0]]) / math.dist(tail, head)
    spots = []
    for far in (thick + 9, 2.2 * thick + 10, 3.5 * thick + 12):
        for share in (0.5, 0.3, 0.7):
            x, y = tail + share * (head - tail)
            for right in (far, -far):
                anchor = "left" if right * across > 5 else "right" if right * across < -5 else "center"
                spots.append((x + right * across, y + right * down, anchor))
    return spots


def _beside(places: Places, left: float, right: float, top: float, wide: float) -> list[Spot]:
    """Return positions for a line's label: above and below the line, from its end backwards, then at the top left."""
    spots: list[Spot] = []
    for share in (1.0, 0.75, 0.5, 0.25, 0.0):
        end = places[round(share * (len(places) - 1))]
        x = min(max(float(end[0]) - share * wide, left + 4), right - wide)
        near = places[(places[:, 0] > x - 4) & (places[:, 0] < x + wide + 4), 1]
        near = near if len(near) else end[1:]
        above, under = float(near.min()), float(near.max())
        spots += [(x, y, "left") for y in (above - 10, under + 11, above - 26, under + 27)]
    return [*spots, *((left + 8, top + (row + 0.5) * _TOP_ROW_PX, "left") for row in range(_TOP_ROWS))]

"""Words of a still picture: on no others, within the panel, and where they hide as little as can be of the marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes as Plot
from matplotlib.lines import Line2D

from .fonts import shorten, text_width, wrapped
from .marks import EDGE, Arrow, Image, Mark, Text
from .palette import colour
from .plots import Sheet, add_swatch, write

_NEAR, _EACH, _APART = 2.0, 7.0, 15.0  # CSS pixels: beside a label, along a line, and from row to row at the right
_ROWS, _ROW = 4, 17.0  # of words below the upper edge of the axes
_LATER = 0.35  # what it costs to be one place further down the list
_TALL = 1.15  # the height of a line, in sizes of its letters
_STEPS: dict[str, Sequence[tuple[float, float]]] = {
    "right": [(10, 0)],
    "left": [(-10, 0)],
    "above": [(0, -13), (0, -24)],
    "below": [(0, 13), (0, 28)],
    "center": [(0, 0)],
    "around": [(9, -11), (-9, -11), (9, 11), (-9, 11), (0, -16), (0, 16), (14, 0), (-14, 0), (12, -28), (-12, -28)],
}
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}

Places = npt.NDArray[np.float64]
Box = tuple[float, float, float, float]


class Spot(NamedTuple):
    """A place for words in CSS pixels of the panel, y the middle of their height."""

    x: float
    y: float
    anchor: str = "start"


class Labels:
    """Finds a place for each text of a panel."""

    def __init__(self, sheet: Sheet, plots: Sequence[Plot]) -> None:
        """Begin with the axes of the panel."""
        self._sheet, self._plots = sheet, plots
        self._boxes: list[Box] = []
        self._things: list[Places] = []
        self._marks: dict[str, tuple[Mark, Places]] = {}
        self.wrapped = wrapped

    def keep_free(self, mark: Mark, artist: Any, plot: Plot) -> None:
        """Remember what a mark covers."""
        if isinstance(artist, Line2D):
            pixels = artist.get_transform().transform(artist.get_xydata()) if artist.axes else None
            pixels = plot.transData.transform(artist.get_xydata()) if pixels is None else pixels
        elif isinstance(mark, Image) or not getattr(mark, "stroke", "ink"):
            return
        else:
            pixels = artist.get_transform().transform(artist.get_path().vertices)
        places = self._from_pixels(pixels)
        self._marks[mark.id] = mark, places
        self._things.append(
            _along(places) if not (isinstance(artist, Line2D) and artist.get_marker() != "None") else places
        )

    def place(self, texts: Sequence[Text], order: int) -> None:
        """Write the texts that find a place."""
        things = np.concatenate(self._things) if self._things else np.zeros((0, 2))
        things = things[np.isfinite(things).all(axis=1)]
        self._place_margin([text for text in texts if text.where == "margin"])
        for mark in texts:
            if mark.where == "margin" or (found := self._best(mark, things)) is None:
                continue
            spot, text = found
            self._boxes.append(_box(text, spot, mark.size, mark.bold))
            bbox = {"boxstyle": "square,pad=0.1", "facecolor": colour("paper"), "edgecolor": "none", "alpha": 0.85}
            look: dict[str, Any] = {"bbox": bbox if mark.backed else None, "zorder": order}
            pixels = self._sheet.place(spot.x, spot.y)
            look |= {"size": mark.size, "role": mark.role, "bold": mark.bold, "anchor": _ANCHORS[spot.anchor]}
            write(self._sheet.figure, *pixels, text, **look)

    def _from_pixels(self, pixels: Any) -> Places:
        """Return pixels of the figure as CSS pixels of the panel."""
        left, top = self._sheet.place(0, 0)
        return (np.asarray(pixels, dtype=np.float64) - (left, top)) * (1, -1) / self._sheet.density

    def _edges(self, plot: Plot) -> Box:
        (left, bottom), (right, top) = self._from_pixels(plot.transAxes.transform([(0, 0), (1, 1)]))
        return float(left), float(top), float(right), float(bottom)

    def _best(self, mark: Text, things: Places) -> tuple[Spot, str] | None:
        plot = self._plots[mark.axes]
        left, top, right, bottom = self._edges(plot)
        right += 10
        if mark.where not in ("top", "on", "beside"):
            left, top, right, bottom = 0.0, 0.0, self._sheet.width, self._sheet.height
        least, best = math.inf, None
        for form, text in enumerate(mark.texts):
            for number, spot in enumerate(self._spots(mark, plot, text_width(text, mark.size, mark.bold))):
                cost = _LATER * number + 3 * form
                a, b, c, d = box = _box(text, spot, mark.size, mark.bold)
                if cost >= least or a < left or b < top or c > right or d > bottom:
                    continue
                if any(a - _NEAR < x1 and x0 < c + _NEAR and b < y1 and y0 < d for x0, y0, x1, y1 in self._boxes):
                    continue
                x, y = things.T
                hidden = 0 if mark.where == "on" else int(((x > a) & (x < c) & (y > b) & (y < d)).sum())
                if cost + hidden < least and not (mark.clear and hidden):
                    least, best = cost + hidden, (spot, text)
                del box
        return best

    def _spots(self, mark: Text, plot: Plot, wide: float) -> list[Spot]:
        """Return where a text may be, the best place first."""
        left, top, right, bottom = self._edges(plot)
        if mark.of:
            if mark.of not in self._marks:
                return []
            of, places = self._marks[mark.of]
            if isinstance(of, Arrow):
                return self._aside(of, plot)
            return (
                _on(places, (left, top, right, bottom))
                if mark.where == "on"
                else _beside(places, left, right, top, wide)
            )
        (low_x, high_x), (low_y, high_y) = plot.get_xlim(), plot.get_ylim()
        at = [high_x if mark.x >= EDGE else low_x if mark.x <= -EDGE else mark.x]
        at.append(high_y if mark.y >= EDGE else low_y if mark.y <= -EDGE else mark.y)
        x, y = self._from_pixels(plot.transData.transform(at)).tolist()
        if mark.where == "top":
            rows = [top + (row + 0.5) * _ROW for row in range(_ROWS)]
            return [*(Spot(x + 5, y) for y in rows), *(Spot(x - 5, y, "end") for y in rows)]
        steps = [step for side in mark.where.split() for step in _STEPS[side]]
        return [Spot(x + a, y + b, "start" if a > 0 else "end" if a < 0 else "middle") for a, b in steps]

    def _aside(self, arrow: Arrow, plot: Plot) -> list[Spot]:
        """Return places beside an arrow: near its middle first."""
        ends = np.asarray(arrow.points, dtype=np.float64).reshape(2, 2)
        (x0, y0), (x1, y1) = self._from_pixels(plot.transData.transform(ends)).tolist()
        length = math.hypot(x1 - x0, y1 - y0)
        if length <= 10:
            return []
        across, down = -(y1 - y0) / length, (x1 - x0) / length
        spots = []
        for far in (20.0, 32.0):
            for share in (0.5, 0.3, 0.7):
                for right in (far, -far):
                    aside = right * across
                    anchor = "start" if aside > 5 else "end" if aside < -5 else "middle"
                    spots.append(Spot(x0 + share * (x1 - x0) + aside, y0 + share * (y1 - y0) + right * down, anchor))
        return spots

    def _place_margin(self, texts: Sequence[Text]) -> None:
        """Write the texts at the right of the axes, as near to their places as they can be."""
        if not texts:
            return
        plot, sheet = self._plots[0], self._sheet
        _, top, right, bottom = self._edges(plot)
        low, high = plot.get_ylim()
        heights = [self._from_pixels(plot.transData.transform((0, min(max(t.y, low), high))))[1] for t in texts]
        order = sorted(range(len(texts)), key=lambda number: float(heights[number]))
        placed: list[float] = []
        for number in order:
            placed.append(max(float(heights[number]), top + 4, placed[-1] + _APART if placed else -math.inf))
        floor = bottom
        for at in reversed(range(len(placed))):
            placed[at] = min(placed[at], floor)
            floor = placed[at] - _APART
        for number, y in zip(order, placed, strict=True):
            mark = texts[number]
            x = right + 8 + 13 * (mark.swatch is not None)
            room = sheet.width - x - 2
            fits = next((text for text in mark.texts if text_width(text, mark.size, mark.bold) <= room), "")
            text = fits or shorten(mark.texts[-1], room, mark.size, bold=mark.bold)
            if mark.swatch is not None:
                add_swatch(mark.swatch, sheet, x - 13, y, 9.0, 9.0)
            write(sheet.figure, *sheet.place(x, y), text, size=mark.size, role=mark.role, bold=mark.bold)
            self._boxes.append(_box(text, Spot(x, y), mark.size, mark.bold))


def _box(text: str, spot: Spot, size: float, bold: bool) -> Box:
    wide, half = text_width(text, size, bold), size * _TALL / 2
    left = spot.x - {"start": 0.0, "middle": wide / 2, "end": wide}[spot.anchor]
    return left, spot.y - half, left + wide, spot.y + half


def _along(places: Places) -> Places:
    """Return places along a line, close enough to each other to tell what lies on it."""
    if len(places) < 2:
        return places
    steps = np.hypot(*np.diff(places, axis=0).T) / _EACH
    counts = np.nan_to_num(np.clip(np.ceil(steps), 1, 200), nan=1.0).astype(int)
    shares = [np.linspace(0, 1, count, endpoint=False)[:, None] for count in counts]
    pairs = zip(places[:-1], places[1:], shares, strict=True)
    return np.concatenate([*(start + share * (end - start) for start, end, share in pairs), places[-1:]])


def _on(places: Places, box: Box) -> list[Spot]:
    left, top, right, bottom = box
    x, y = places.T
    inside = places[(x > left) & (x < right) & (y > top) & (y < bottom)]
    few = inside[:: max(1, len(inside) // 24)]
    return [Spot(float(x), float(y), "middle") for x, y in few[np.argsort(few[:, 0])]]


def _beside(places: Places, left: float, right: float, top: float, wide: float) -> list[Spot]:
    """Return places above and below a line that goes from left to right."""
    places = places[np.isfinite(places).all(axis=1)]
    spots = []
    for share in (1.0, 0.75, 0.5, 0.25, 0.0):
        if not len(places):
            break
        end = places[round(share * (len(places) - 1))]
        x = min(max(float(end[0]) - share * wide, left + 4), right - wide)
        near = places[(places[:, 0] > x - 4) & (places[:, 0] < x + wide + 4), 1]
        near = near if len(near) else end[1:]
        above, under = float(near.min()), float(near.max())
        spots += [Spot(x, y) for y in (above - 10, under + 11, above - 26, under + 27)]
    return [*spots, *(Spot(left + 8, top + (row + 0.5) * _ROW) for row in range(_ROWS))]

"""matplotlib's Axes for a Drawing: their positions on a sheet, their ticks, and the labels around them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes as Plot
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Affine2D, Bbox

from ..formatting import bytes_text, power_text, short
from .fonts import fitting, shorten, text_width
from .marks import AXES_EDGE, Axes, Axis, Drawing, Key, Text
from .palette import colour

INCH = 96.0  # CSS pixels in an inch
POINTS_PER_PX = 72 / INCH  # points in a CSS pixel
_MARGIN_PX, _TITLE_PX, _LINE_PX, _RIGHT_PX, _TICK_PX = 8.0, 14.0, 18.0, 14.0, 4.0
_MAX_MARGIN_SHARE = 0.4  # maximum share of the sheet's width for labels to the right of the axes
# widths in the key, in CSS pixels: a swatch with the gap after it, this gap alone, and the gap between entries
_SWATCH, _SWATCH_GAP, _ENTRY_GAP = 23.0, 5.0, 16.0
_LINE_HEIGHT = 1.15  # line height as a multiple of the font size
_SMALL_PX = 11.0
_CLIP_PX = 4000.0  # largest coordinate on a sheet, in CSS pixels; larger ones are clamped
_SLANT_DEGREES, _MAX_LABEL_PX = 50.0, 76.0  # angle of slanted labels below the axis, and width up to which none is cut

Places = npt.NDArray[np.float64]  # n x 2 array of positions, in CSS pixels from the upper left corner of a sheet


class Sheet:
    """A rectangle of a figure, measured in CSS pixels from the rectangle's upper left corner."""

    def __init__(self, figure: Figure, left: float, top: float, width: float, height: float) -> None:
        self.figure, self.left, self.top, self.width, self.height = figure, left, top, width, height
        inches = Affine2D().translate(left, top - figure.get_figheight() * INCH).scale(1 / INCH, -1 / INCH)
        self.pixels = inches + figure.dpi_scale_trans
        self.text_boxes: list[Bbox] = []

    def places(self, plot: Plot, points: Any) -> Places:
        """Return points of a plot in CSS pixels of the sheet; ``AXES_EDGE`` is an edge, and far points are clamped."""
        rows = np.array(points, dtype=np.float64).reshape(-1, 2)
        edges = np.array([plot.get_xlim(), plot.get_ylim()])
        rows = np.where(rows >= AXES_EDGE, edges[:, 1], np.where(rows <= -AXES_EDGE, edges[:, 0], rows))
        return np.clip(self.pixels.inverted().transform(plot.transData.transform(rows)), -_CLIP_PX, _CLIP_PX)

    def edges(self, plot: Plot) -> tuple[float, float, float, float]:
        """Return the left, top, right and bottom of a plot in CSS pixels of the sheet."""
        (left, bottom), (right, top) = self.pixels.inverted().transform(plot.transAxes.transform([(0, 0), (1, 1)]))
        return float(left), float(top), float(right), float(bottom)

    def write(
        self, x: float, y: float, text: str, *, size: float = 12.0, role: str = "ink", bold: bool = False,
        anchor: str = "left", **options: Any,
    ) -> None:  # fmt: skip
        """Write ``text`` with its ``anchor`` ("left", "center" or "right") at ``x``, vertically centred at ``y``."""
        if text and "rotation" not in options:
            self.text_boxes.append(text_box(x, y, text, size, bold, anchor))
        options |= {"va": "center", "ha": anchor, "fontsize": size * POINTS_PER_PX, "color": colour(role)}
        options |= {"fontweight": "bold" if bold else "normal", "parse_math": False, "transform": self.pixels}
        self.figure.text(x, y, text, **options)

    def add_box(
        self, x: float, y: float, wide: float, tall: float, fill: str = "", stroke: str = "", width: float = 1.0,
        **options: Any,
    ) -> None:  # fmt: skip
        """Paint a rectangle whose upper left corner is at ``x``, ``y``."""
        options = {"edgecolor": colour(stroke), "facecolor": colour(fill), "transform": self.pixels, **options}
        self.figure.add_artist(Rectangle((x, y), wide, tall, linewidth=width * POINTS_PER_PX * bool(stroke), **options))

    def add_swatch(self, entry: Key, x: float, y: float, wide: float, tall: float) -> None:
        """Paint the swatch of an entry of the key, with its left side at ``x`` and its vertical centre at ``y``."""
        style: dict[str, Any] = {"linestyle": "dashed" if entry.dash else "solid", "hatch": entry.hatch * 2 or None}
        style["edgecolor"] = colour(entry.stroke or "ink")
        self.add_box(x, y - tall / 2, wide, tall, entry.fill, entry.stroke, entry.width, **style)


def text_box(x: float, y: float, text: str, size: float = 12.0, bold: bool = False, anchor: str = "left") -> Bbox:
    """Return the bounding box, in CSS pixels, of ``text`` written by ``Sheet.write`` with the same arguments."""
    wide, tall = text_width(text, size, bold), size * _LINE_HEIGHT
    left = x - {"left": 0.0, "center": wide / 2, "right": wide}[anchor]
    return Bbox.from_bounds(left, y - tall / 2, wide, tall)


def add_plots(drawing: Drawing, sheet: Sheet) -> list[Plot]:
    """Add the axes of a Drawing to ``sheet``, write the labels around them, and return the axes."""
    top = _add_head(drawing, sheet)
    names = [mark for mark in drawing.marks if isinstance(mark, Text) and mark.where == "margin"]
    widths = (text_width(name.texts[0], name.size, name.bold) + 15 * (name.swatch is not None) for name in names)
    half = max(text_width(_FORMATS[axes.x.ticks](axes.x.high)) / 2 + 3 for axes in drawing.axes)  # of the last label
    right = sheet.width - max(_RIGHT_PX, half, min(_MAX_MARGIN_SHARE * sheet.width, max(widths, default=0.0) + 12))
    feet = [_foot(axes.x) for axes in drawing.axes]
    room = sheet.height - top - sum(feet) - _LINE_PX * sum(bool(axes.caption) for axes in drawing.axes)
    shares = sum(axes.share for axes in drawing.axes)
    heights = [max(room, 20.0) * axes.share / shares for axes in drawing.axes]
    left = _MARGIN_PX + max(_side(axes.y, tall) for axes, tall in zip(drawing.axes, heights, strict=True))
    plots = []
    for axes, tall, foot in zip(drawing.axes, heights, feet, strict=True):
        top += _LINE_PX * bool(axes.caption)
        plots.append(_add_axes(axes, sheet, (left, top, max(right, left + 20), top + tall)))
        top += tall + foot
    return plots


def _add_head(drawing: Drawing, sheet: Sheet) -> float:
    """Write the title, corner text, notes and key; return the y coordinate of their bottom edge."""
    room, y = sheet.width - 2 * _MARGIN_PX, 15.0
    size = min(_TITLE_PX, max(_SMALL_PX, _TITLE_PX * room / max(text_width(drawing.title, _TITLE_PX, True), 1.0)))
    title = shorten(drawing.title, room, size, bold=True)
    sheet.write(_MARGIN_PX, y, title, size=size, bold=True)
    free = room - text_width(title, size, True) - 12
    forms = [(text, size) for size in (12.0, _SMALL_PX) for text in drawing.corner if text_width(text, size) <= free]
    notes = [(fitting(note, room), "ink") for note in drawing.notes]
    if forms:
        text, size = forms[0]
        sheet.write(sheet.width - _MARGIN_PX, y, text, size=size, role=drawing.corner_role, anchor="right")
    elif drawing.corner:
        notes.insert(0, (fitting(drawing.corner, room), drawing.corner_role))
    for text, role in notes:
        y += _LINE_PX
        sheet.write(_MARGIN_PX, y, text, role=role)
    y, x = y + (_LINE_PX + 2) * bool(drawing.key), _MARGIN_PX
    rows = [[entry.texts[:rank][-1] for entry in drawing.key] for rank in (1, 2)]
    fit = (row for row in rows if sum(_SWATCH + text_width(text) + _ENTRY_GAP for text in row) - _ENTRY_GAP <= room)
    for entry, text in zip(drawing.key, next(fit, [entry.texts[-1] for entry in drawing.key]), strict=True):
        if x > _MARGIN_PX and x + _SWATCH + text_width(text) > sheet.width - _MARGIN_PX:
            x, y = _MARGIN_PX, y + _LINE_PX
        sheet.add_swatch(entry, x, y, _SWATCH - _SWATCH_GAP, 12.0)
        sheet.write(x + _SWATCH, y, text)
        x += _SWATCH + text_width(text) + _ENTRY_GAP
    return y + 15


def _foot(x: Axis) -> float:
    title = 17.0 * bool(x.words)
    if x.spans:
        brackets = 22.0 * any(span.bracket for span in x.spans)
        longest = max(text_width(span.texts[0], _SMALL_PX) for span in x.spans)
        return (min(longest, _MAX_LABEL_PX) * 0.77 + 14 if x.ticks == "slanted" else 24.0) + brackets + title
    return (8.0 if x.ticks in ("none", "lines") else 24.0) + title


def _side(y: Axis, tall: float) -> float:
    if y.ticks == "none":
        return 20.0 * bool(y.words)
    widest = max((text_width(_FORMATS[y.ticks](value)) for value in tick_values(y, tall, 38.0)), default=12.0)
    return max(widest, 12.0) + _TICK_PX + 20 * bool(y.words)


def _add_axes(axes: Axes, sheet: Sheet, box: tuple[float, float, float, float]) -> Plot:
    x, y, (left, top, right, bottom) = equal_units(axes, box)
    figure = sheet.figure
    wide, tall = figure.get_figwidth() * INCH, figure.get_figheight() * INCH
    box = ((sheet.left + left) / wide, 1 - (sheet.top + bottom) / tall, (right - left) / wide, (bottom - top) / tall)
    plot = figure.add_axes(box, zorder=1, xscale="log" if x.log else "linear", yscale="log" if y.log else "linear")
    plot.set(xlim=(x.low, x.high), ylim=(y.low, y.high))
    for axis, values, lines in (
        (x, [] if x.spans else tick_values(x, right - left, 75.0), plot.xaxis),
        (y, tick_values(y, bottom - top, 38.0), plot.yaxis),
    ):
        shown = []
        for value in values:
            across, down = sheet.places(plot, (value, value))[0]
            middle, height, anchor = (across, bottom + 14, "center") if axis is x else (left - 6, down, "right")
            label_box = text_box(middle, height, _FORMATS[axis.ticks](value), anchor=anchor)
            if not any(label_box.padded(3, 0).overlaps(other) for other in sheet.text_boxes):
                shown.append(value)
                sheet.text_boxes.append(label_box)
        lines.set_ticks(shown, [_FORMATS[axis.ticks](value) for value in shown])
        lines.set_ticks([], minor=True)
        lines.set_tick_params(length=_TICK_PX * POINTS_PER_PX, pad=2)
    plot.spines["left"].set_visible(y.ticks != "none")
    plot.spines["bottom"].set_visible(not x.ticks == y.ticks == "none")
    middle = (left + right) / 2
    title = shorten(x.words, 2 * min(middle, sheet.width - middle) - 4)
    sheet.write(middle, bottom + _foot(x) - 12, title, anchor="center")
    title = shorten(y.words, bottom - top + 20)
    sheet.write(left - _side(y, bottom - top) + 8, (top + bottom) / 2, title, anchor="center", rotation=90)
    sheet.write(left, top - 10, shorten(axes.caption, sheet.width - left - 2))
    _add_spans(x, sheet, plot, bottom)
    return plot


def equal_units(axes: Axes, box: tuple[float, float, float, float]) -> tuple[Axis, Axis, tuple[float, ...]]:
    """Return the x axis, the y axis and the box (left, top, right, bottom), changed as ``axes.equal`` requires."""
    x, y, (left, top, right, bottom) = axes.x, axes.y, box
    wide, tall = right - left, bottom - top
    shape = (x.high - x.low) / (y.high - y.low) * tall / wide  # below 1 if the box is too wide for equal units
    if axes.equal == "fill":
        x, y = (_widened(x, 1 / shape), y) if shape < 1 else (x, _widened(y, shape))
    elif axes.equal == "fit" and shape < 1:
        left, right = left + wide * (1 - shape) / 2, right - wide * (1 - shape) / 2
    elif axes.equal == "fit":
        top, bottom = top + tall * (1 - 1 / shape) / 2, bottom - tall * (1 - 1 / shape) / 2
    return x, y, (left, top, right, bottom)


def _widened(axis: Axis, times: float) -> Axis:
    middle, half = (axis.low + axis.high) / 2, (axis.high - axis.low) / 2 * times
    return replace(axis, low=middle - half, high=middle + half)


def _add_spans(x: Axis, sheet: Sheet, plot: Plot, bottom: float) -> None:
    """Draw the brackets of spans below the x axis, and write the labels for which there is room, low ranks first."""
    taken: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    below = bottom + 22.0 * any(span.bracket for span in x.spans)
    for span in sorted(x.spans, key=lambda each: (not each.bracket, each.rank, each.low - each.high)):
        start, end = sheet.places(plot, [(span.low, 1), (span.high, 1)])[:, 0].tolist()
        middle, slanted = (start + end) / 2, x.ticks == "slanted" and not span.bracket
        if span.bracket:
            across, down = (start + 1, start + 1, end - 1, end - 1), np.array([3, 7, 7, 3]) + bottom
            line = Line2D(across, down, color=colour("grey"), linewidth=1.2 * POINTS_PER_PX, transform=sheet.pixels)
            sheet.figure.add_artist(line)
        text = fitting(span.texts, _MAX_LABEL_PX if slanted else max(end - start, _MAX_LABEL_PX), _SMALL_PX)
        half = 8.0 if slanted else text_width(text, _SMALL_PX) / 2 + 3
        left = 0.65 * text_width(text, _SMALL_PX) + 8 if slanted else half
        if middle < left or middle + half > sheet.width or any(
            middle - half < other and this < middle + half for this, other in taken[span.bracket]
        ):  # fmt: skip
            continue
        taken[span.bracket].append((middle - half, middle + half))
        turn: dict[str, Any] = {"rotation": _SLANT_DEGREES, "rotation_mode": "anchor"} if slanted else {}
        height = bottom + 17 if span.bracket else below + (8 if slanted else 12)
        sheet.write(middle, height, text, size=_SMALL_PX, anchor="right" if slanted else "center", **turn)


def byte_ticks(top: float) -> list[float]:
    """Return up to six values from 0 to ``top``, multiples of a round number of bytes, KiB, MiB, GiB, TiB or PiB."""
    unit = max((unit for unit in (1024.0**power for power in range(6)) if unit <= top / 1.5), default=1.0)
    steps = (256, 512) if 0.97 * top > 999 * unit else (1, 2, 5, 10, 20, 50, 100, 200)  # no label like "0.98 MiB"
    step = next((s * unit for s in steps if top / (s * unit) <= 5.5), top / 4)
    return [step * number for number in range(math.ceil(top * 0.97 / step))]


def tick_values(axis: Axis, long: float, each: float) -> list[float]:
    """Return the numbers at the ticks of an axis of ``long`` CSS pixels, about one for every ``each`` pixels."""
    low, high = axis.low, axis.high
    count = int(min(max(long / each, 2), 10))
    if axis.ticks in ("none", "slanted"):
        return []
    if axis.ticks == "bytes":
        return byte_ticks(high)
    if axis.ticks == "shares":
        return [0.0, 1.0]
    if axis.log and high / low >= 10:
        bottom, top = math.log10(low), math.log10(high)
        step = max(1, math.ceil((top - bottom) / count))
        return [10.0**power for power in range(math.ceil(bottom - 1e-9), math.floor(top + 1e-9) + 1, step)]
    whole = axis.ticks in ("updates", "powers", "lines")
    slack = 1e-9 * (high - low)
    values = MaxNLocator(count, steps=[1, 2, 5, 10], integer=whole).tick_values(low, high)
    return [0.0 if abs(value) < slack else float(value) for value in values if low - slack <= value <= high + slack]


_FORMATS: dict[str, Callable[[float], str]] = {
    "number": short,
    "updates": lambda value: f"{value:,.0f}" if value < 1e5 else short(value),
    "bytes": bytes_text,
    "powers": power_text,
    "shares": lambda value: f"{value:.0%}",
    **dict.fromkeys(("lines", "none", "slanted"), lambda value: ""),
}

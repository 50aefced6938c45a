"""matplotlib's Axes of a Drawing: where they lie on a sheet, their ticks, and the words around them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes as Plot
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ..formatting import bytes_text, short
from .fonts import shorten, text_width
from .marks import Axes, Axis, Drawing, Key, Text
from .palette import colour

INCH = 96.0
"""CSS pixels in an inch."""
POINT = 72 / INCH
"""Points in a CSS pixel."""
SUPERSCRIPTS = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_MARGIN, _TITLE, _LINE, _RIGHT, _TICK = 8.0, 14.0, 18.0, 14.0, 4.0  # CSS pixels
_WIDEST = 0.4  # of the width, for words at the right of the axes
_SWATCH, _SWATCH_GAP = 18.0, 5.0
_SMALL = 11.0
_SLANT, _HIGHEST = 50.0, 76.0  # degrees, and CSS pixels that words below the axis may take


@dataclass(frozen=True)
class Sheet:
    """A part of a figure, in CSS pixels from its upper left corner; ``density`` pixels each."""

    figure: Figure
    left: float
    top: float
    width: float
    height: float
    density: float

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixels of the figure at a place of this part."""
        tall = self.figure.get_figheight() * INCH
        return (self.left + x) * self.density, (tall - self.top - y) * self.density


def write(
    figure: Figure, x: float, y: float, text: str, *, size: float = 12.0, role: str = "ink", bold: bool = False,
    anchor: str = "left", **look: Any,
) -> Any:  # fmt: skip
    """Write a text on the figure, in pixels unless ``transform`` says otherwise; the middle of its height is at y."""
    weight = "bold" if bold else "normal"
    look = {"transform": None, "va": "center", "parse_math": False, **look}
    return figure.text(x, y, text, fontsize=size * POINT, color=colour(role), fontweight=weight, ha=anchor, **look)


def add_plots(drawing: Drawing, sheet: Sheet) -> list[Plot]:
    """Add the axes of a Drawing with all that stands around them."""
    top = _add_head(drawing, sheet)
    margin = max((margin_width(mark) for mark in drawing.marks if isinstance(mark, Text)), default=0.0)
    right = sheet.width - max(_RIGHT, min(_WIDEST * sheet.width, margin + 12))
    feet = [_foot(axes) for axes in drawing.axes]
    room = sheet.height - top - sum(feet) - _LINE * sum(bool(axes.caption) for axes in drawing.axes)
    shares = sum(axes.share for axes in drawing.axes)
    heights = [room * axes.share / shares for axes in drawing.axes]
    left = _MARGIN + max(_side_width(axes.y, tall) for axes, tall in zip(drawing.axes, heights, strict=True))
    plots = []
    for axes, tall, foot in zip(drawing.axes, heights, feet, strict=True):
        top += _LINE * bool(axes.caption)
        plots.append(_add_axes(axes, sheet, (left, top, right, top + tall)))
        top += tall + foot
    return plots


def margin_width(mark: Text) -> float:
    """Return the CSS pixels that a text at the right of the axes needs."""
    if mark.where != "margin":
        return 0.0
    return text_width(mark.texts[0], mark.size, mark.bold) + 15 * (mark.swatch is not None)


def _add_head(drawing: Drawing, sheet: Sheet) -> float:
    """Write the title, the corner, notes and key; return where they end."""
    room, y = sheet.width - 2 * _MARGIN, 15.0
    size = min(_TITLE, max(_SMALL, _TITLE * room / max(text_width(drawing.title, _TITLE, True), 1.0)))
    title = shorten(drawing.title, room, size, bold=True)
    write(sheet.figure, *sheet.place(_MARGIN, y), title, size=size, bold=True)
    free = room - text_width(title, size, True) - 12
    if drawing.corner:
        fits = next((text for text in drawing.corner if text_width(text) <= free), "")
        y += 0.0 if fits else _LINE
        place = sheet.place(sheet.width - _MARGIN, 15.0) if fits else sheet.place(_MARGIN, y)
        text, anchor = (fits, "right") if fits else (_fitting(drawing.corner, room), "left")
        write(sheet.figure, *place, text, role=drawing.corner_role, anchor=anchor)
    for note in drawing.notes:
        y += _LINE
        write(sheet.figure, *sheet.place(_MARGIN, y), _fitting(note, room))
    if drawing.key:
        y += _LINE + 2
        _add_key(drawing.key, sheet, y, room)
    return y + 15


def _fitting(texts: Sequence[str], wide: float) -> str:
    return next((text for text in texts if text_width(text) <= wide), "") or shorten(texts[-1], wide)


def _add_key(key: Sequence[Key], sheet: Sheet, y: float, room: float) -> None:
    texts = [entry.texts[0] for entry in key]
    if sum(text_width(text) + _SWATCH + _SWATCH_GAP + 16 for text in texts) - 16 > room:
        texts = [entry.texts[-1] for entry in key]
    x = _MARGIN
    for entry, text in zip(key, texts, strict=True):
        add_swatch(entry, sheet, x, y, _SWATCH, 12.0)
        write(sheet.figure, *sheet.place(x + _SWATCH + _SWATCH_GAP, y), text)
        x += _SWATCH + _SWATCH_GAP + text_width(text) + 16


def add_swatch(entry: Key, sheet: Sheet, x: float, y: float, wide: float, tall: float) -> None:
    """Paint a small box with the look of an area, its left edge at x, its middle at y."""
    corner, density = sheet.place(x, y + tall / 2), sheet.density
    fill = colour(entry.fill) if entry.fill else "none"
    look: dict[str, Any] = {"facecolor": fill, "edgecolor": colour(entry.stroke or "ink"), "transform": None}
    look["linewidth"] = entry.width * POINT if entry.stroke else 0.0
    look["linestyle"] = "dashed" if entry.dash else "solid"
    box = Rectangle(corner, wide * density, tall * density, **look)
    if entry.hatch:
        box.set_hatch(entry.hatch * 2)
    sheet.figure.add_artist(box)


def _foot(axes: Axes) -> float:
    """Return the CSS pixels below a pair of axes."""
    x = axes.x
    words = 17.0 * bool(x.words)
    if x.spans:
        brackets = 22.0 * any(span.bracket for span in x.spans)
        longest = max(text_width(span.texts[0], _SMALL) for span in x.spans)
        return (min(longest, _HIGHEST) * 0.77 + 14 if x.ticks == "slanted" else 24.0) + brackets + words
    return (8.0 if x.ticks in ("none", "lines") else 24.0) + words


def _side_width(y: Axis, tall: float) -> float:
    if y.ticks == "none":
        return 0.0
    widest = max((text_width(FORMATS[y.ticks](value)) for value in tick_values(y, tall, 38.0)), default=12.0)
    return max(widest, 12.0) + _TICK + 20 * bool(y.words)


def _add_axes(axes: Axes, sheet: Sheet, box: tuple[float, float, float, float]) -> Plot:
    left, top, right, bottom = box
    wide, tall = sheet.figure.get_figwidth() * INCH, sheet.figure.get_figheight() * INCH
    place = ((sheet.left + left) / wide, 1 - (sheet.top + bottom) / tall, (right - left) / wide, (bottom - top) / tall)
    plot = sheet.figure.add_axes(place)
    plot.set_zorder(1)
    for side, axis in (("x", axes.x), ("y", axes.y)):
        set_limits = plot.set_xlim if side == "x" else plot.set_ylim
        if axis.log:
            (plot.set_xscale if side == "x" else plot.set_yscale)("log")
        set_limits(axis.low, axis.high)
        (plot.set_xlabel if side == "x" else plot.set_ylabel)(axis.words, fontsize=12 * POINT, labelpad=4)
    if axes.equal:
        plot.set_aspect("equal", adjustable="box" if axes.equal == "fit" else "datalim", anchor="C")
        plot.apply_aspect()
    for axis, long, each, target in (
        (axes.x, right - left, 75.0, plot.xaxis), (axes.y, bottom - top, 38.0, plot.yaxis)
    ):  # fmt: skip
        low, high = target.get_view_interval()
        shown = Axis(float(low), float(high), axis.log, axis.words, axis.ticks)
        target.set_ticks([] if axis.spans else tick_values(shown, long, each), minor=False)
        target.set_ticks([], minor=True)
        target.set_major_formatter(FuncFormatter(lambda value, _, ticks=axis.ticks: FORMATS[ticks](value)))
        target.set_tick_params(length=0 if axis.ticks == "none" else 3, pad=2)
    plot.spines["left"].set_visible(axes.y.ticks != "none")
    plot.spines["bottom"].set_visible(not axes.x.ticks == axes.y.ticks == "none")
    if axes.caption:
        write(sheet.figure, *sheet.place(left, top - 10), axes.caption)
    if axes.x.spans:
        _add_spans(axes.x, sheet, plot, bottom)
    return plot


def _add_spans(x: Axis, sheet: Sheet, plot: Plot, bottom: float) -> None:
    """Write words below parts of the x axis, those of the lowest rank first."""
    figure = sheet.figure
    begin = sheet.place(0, 0)[0]
    taken: list[tuple[float, float]] = []
    brackets = any(span.bracket for span in x.spans)
    slanted = x.ticks == "slanted"
    for span in sorted(x.spans, key=lambda each: (not each.bracket, each.rank, each.low - each.high)):
        a, b = ((plot.transData.transform((value, 0))[0] - begin) / sheet.density for value in (span.low, span.high))
        middle = (a + b) / 2
        if span.bracket:
            corners = [(a + 1, 3), (a + 1, 7), (b - 1, 7), (b - 1, 3)]
            pixels = [sheet.place(across, bottom + down) for across, down in corners]
            figure.add_artist(_pixel_line(pixels))
            text = next((t for t in span.texts if text_width(t, _SMALL) < b - a), span.texts[-1])
            write(figure, *sheet.place(middle, bottom + 17), text, size=_SMALL, anchor="center")
            continue
        room = _HIGHEST if slanted else max(b - a, _HIGHEST)
        text = next((t for t in span.texts if text_width(t, _SMALL) <= room), shorten(span.texts[-1], room, _SMALL))
        half = 8.0 if slanted else text_width(text, _SMALL) / 2 + 3
        if middle - half < 0 or any(middle - half < end and start < middle + half for start, end in taken):
            continue
        taken.append((middle - half, middle + half))
        look = {"rotation": _SLANT, "rotation_mode": "anchor"} if slanted else {}
        down = 8 if slanted else 34 if brackets else 12
        place = sheet.place(middle, bottom + down)
        write(figure, *place, text, size=_SMALL, anchor="right" if slanted else "center", **look)


def _pixel_line(pixels: Sequence[tuple[float, float]]) -> Any:
    from matplotlib.lines import Line2D

    x, y = zip(*pixels, strict=True)
    return Line2D(x, y, color=colour("grey"), linewidth=1.2 * POINT, transform=None)


def byte_ticks(top: float) -> list[float]:
    """Return up to six places from 0 to ``top`` on round numbers of KiB, MiB, GiB or TiB."""
    unit = max((unit for unit in (1024.0**power for power in range(6)) if unit <= top / 1.5), default=1.0)
    steps = (256, 512) if 0.97 * top > 999 * unit else (1, 2, 5, 10, 20, 50, 100, 200)  # none is written "0.98 MiB"
    step = next((s * unit for s in steps if top / (s * unit) <= 5.5), top / 4)
    return [step * at for at in range(math.ceil(top * 0.97 / step))]


def tick_values(axis: Axis, long: float, each: float) -> list[float]:
    """Return the numbers at the ticks of an axis of ``long`` CSS pixels, about one for ``each`` of them."""
    low, high = axis.low, axis.high
    count = int(min(max(long / each, 2), 10))
    if axis.ticks in ("none", "slanted"):
        return []
    if axis.ticks == "bytes":
        return byte_ticks(high)
    if axis.ticks == "shares":
        return [0.0, 1.0]
    if axis.log:
        bottom, top = math.log10(low), math.log10(high)
        step = max(1, math.ceil((top - bottom) / count))
        return [10.0**power for power in range(math.ceil(bottom - 1e-9), math.floor(top + 1e-9) + 1, step)]
    whole = axis.ticks in ("updates", "powers", "lines")
    slack = 1e-9 * (high - low)
    values = MaxNLocator(count, steps=[1, 2, 5, 10], integer=whole).tick_values(low, high)
    return [0.0 if abs(value) < slack else float(value) for value in values if low - slack <= value <= high + slack]


FORMATS: dict[str, Callable[[float], str]] = {
    "number": short,
    "updates": lambda value: f"{value:,.0f}" if value < 1e5 else short(value),
    "bytes": bytes_text,
    "powers": lambda value: f"2{str(round(value)).translate(SUPERSCRIPTS)}",
    "shares": lambda value: f"{value:.0%}",
    "lines": lambda value: "",
    "none": lambda value: "",
    "slanted": lambda value: "",
}
"""How the numbers at ticks are written."""

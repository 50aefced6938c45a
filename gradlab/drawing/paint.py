"""Drawings as PNG and SVG, painted by matplotlib in figures that neither use nor change a learner's rcParams."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes as Plot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.transforms import Bbox, TransformedBbox
from PIL import Image as Picture

from .fonts import text_width, wrapped
from .labels import Labels
from .listing import Listing, paint_listing
from .marks import DASHES, SHAPES, Arrow, Band, Dots, Drawing, Image, Line, Mark, Text
from .palette import colour
from .plots import INCH, POINTS_PER_PX, Places, Sheet, add_plots

_STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "text.color": colour("ink"),
    "axes.edgecolor": colour("grey"),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    **dict.fromkeys(("xtick.color", "ytick.color"), colour("grey")),
    **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), colour("ink")),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), 9.0),
    "lines.linewidth": 1.8,
}
"""Differences from matplotlib's defaults; the learner's rcParams (dark_background, usetex, xkcd) have no effect."""


def gradlab_style() -> AbstractContextManager[None]:
    """Return a context manager in which matplotlib uses gradlab's settings instead of the learner's rcParams."""
    return matplotlib.style.context(["default", _STYLE])


_MARKERS = dict(zip(SHAPES, "oo^vDx+", strict=True))
_DASHES: dict[str, Any] = dict(zip(DASHES, ["solid", (0, (4, 2.5)), (0, (1.2, 1.8)), (0, (6, 2, 1.2, 2))], strict=True))
_MIN_ARROW_PX, _MAX_ARROW_PX = 5.0, 18.0  # limits of the default arrow width in CSS pixels


class Placed(NamedTuple):
    """A Drawing or a Listing with its position and size on the sheet, in CSS pixels."""

    drawing: Drawing | Listing
    left: float
    top: float
    width: float
    height: float


_PLANE_PX = 380.0  # largest height of a panel that is made taller than the others for equal units, in CSS pixels
_GAP_PX = 10.0  # distance between a listing and the panels to the right of it, in CSS pixels


def in_rows(
    drawings: Sequence[Drawing | Listing],
    columns: int,
    size: tuple[float, float],
    *,
    beside: Listing | None = None,
    above: Listing | None = None,
    last: float = 0.0,
) -> list[Placed]:
    """Return Drawings, each of the given ``size``, and Listings, each of its own size, placed in rows of ``columns``.

    A Drawing whose axes are fitted to equal units may become taller. Unless ``last`` is 0, it is the width of the last
    item. ``beside`` is put to the left of all rows, and ``above`` at the top. Raises ValueError if ``columns`` < 1.
    """
    if columns < 1:
        raise ValueError(f"columns must be at least 1, got {columns}")
    placed, left, top = [], 0.0, 0.0
    if above is not None:
        placed, top = [Placed(above, 0.0, 0.0, above.width, above.height)], above.height
    if beside is not None:
        placed.append(Placed(beside, 0.0, top, beside.width, beside.height))
        left = beside.width + _GAP_PX
    for begin in range(0, len(drawings), columns):
        x, tall = left, 0.0
        for number, drawing in enumerate(drawings[begin : begin + columns], begin):
            width, height = (drawing.width, drawing.height) if isinstance(drawing, Listing) else size
            width = last if last and number == len(drawings) - 1 else width
            if isinstance(drawing, Drawing) and drawing.axes[0].equal == "fit":  # a low panel shrinks "fit" axes
                x_axis, y_axis = drawing.axes[0].x, drawing.axes[0].y
                height = max(height, min(_PLANE_PX, width * (y_axis.high - y_axis.low) / (x_axis.high - x_axis.low)))
            placed.append(Placed(drawing, x, top, width, height))
            x, tall = x + width + _GAP_PX * isinstance(drawing, Listing), max(tall, height)
        top += tall
    return placed


def to_png(placed: Sequence[Placed], density: float = 2.0) -> bytes:
    """Return the placed Drawings and Listings as a PNG with up to 256 colours and ``density`` pixels per CSS pixel."""
    with gradlab_style():
        figure = make_figure(placed, density)
        canvas: Any = FigureCanvasAgg(figure)  # matplotlib has no types for this class
        canvas.draw()
    picture = Picture.frombuffer("RGBA", canvas.get_width_height(), canvas.buffer_rgba()).convert("RGB")
    vars(canvas.renderer).clear()  # every text refers to the renderer, which only garbage collection would free
    figure.clear()  # figure and canvas refer to each other
    return small_png(picture)


def to_svg(placed: Sequence[Placed]) -> str:
    """Return the placed Drawings and Listings as an SVG string; equal Drawings give equal strings."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # only SVG needs it

    out = io.StringIO()
    with gradlab_style(), matplotlib.rc_context({"svg.hashsalt": "gradlab", "svg.fonttype": "path"}):
        figure = make_figure(placed, 1.0)
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(out, metadata={"Date": None, "Creator": None})
    figure.clear()
    return out.getvalue()


def small_png(picture: Picture.Image) -> bytes:
    """Return an RGB picture as a PNG with at most 256 colours, without dithering; frequent colours stay exact."""
    few = picture.quantize(256, method=Picture.Quantize.MEDIANCUT, dither=Picture.Dither.NONE)
    out = io.BytesIO()
    few.save(out, "PNG", compress_level=7)  # 8 % more bytes than at level 9, in a sixth of the time
    return out.getvalue()


def make_figure(placed: Sequence[Placed], density: float) -> Figure:
    """Return a figure with each Drawing and Listing painted at its position."""
    wide = max((each.left + each.width for each in placed), default=1)
    tall = max((each.top + each.height for each in placed), default=1)
    figure = Figure(figsize=(wide / INCH, tall / INCH), dpi=INCH * density, facecolor=colour("paper"))
    for drawing, *box in placed:
        sheet = Sheet(figure, *box)
        if isinstance(drawing, Listing):
            paint_listing(drawing, sheet)
        else:
            _paint(drawing, sheet)
    return figure


def _paint(drawing: Drawing, sheet: Sheet) -> None:
    plots, texts = add_plots(drawing, sheet), [mark for mark in drawing.marks if isinstance(mark, Text)]
    ends = (sheet.places(plots[0], mark.points) for mark in drawing.marks if isinstance(mark, Arrow))
    longest = max((math.dist(*pair) for pair in ends), default=0.0)
    unit = max(min(sheet.width / 32, sheet.height / 32, longest / 8, _MAX_ARROW_PX), _MIN_ARROW_PX)
    panel = TransformedBbox(Bbox.from_bounds(0, 0, sheet.width, sheet.height), sheet.pixels)
    marks: dict[str, tuple[Mark, list[Places]]] = {}
    for order, mark in enumerate(drawing.marks, 3):  # zorders from 3 on are in front of the axes
        if isinstance(mark, Text):
            continue
        plot = plots[getattr(mark, "axes", 0)]
        pieces, artists = _paint_mark(mark, plot, sheet, unit)
        marks[mark.id] = mark, pieces
        for artist in artists:
            artist.set_zorder(order)
            plot.add_artist(artist)
            cut = isinstance(mark, Arrow) and drawing.axes[0].equal  # with equal units, arrows are cut off at the edge
            if isinstance(mark, Arrow | Dots) and not cut:  # dots at an edge are not cut off
                artist.set_clip_path(None)
                artist.set_clip_box(panel)
    if drawing.notice:
        _add_notice(drawing, plots[0], sheet)
    Labels(sheet, plots, marks).write(texts, len(drawing.marks) + 3)
    if drawing.faint:
        sheet.add_box(0, 0, sheet.width, sheet.height, "paper", alpha=0.6, zorder=1e7)


def _add_notice(drawing: Drawing, plot: Plot, sheet: Sheet) -> None:
    """Write the notice in the middle of the axes or, if there are marks, in a frame near the bottom of the axes."""
    left, top, right, bottom = sheet.edges(plot)
    framed = bool(drawing.marks)
    lines = wrapped(drawing.notice, max((right - left) * 0.9 - 24, sheet.width / 2), 13.0)
    wide, tall = max(text_width(line, 13.0, framed) for line in lines) + 16, 19.0 * len(lines) + 8
    x = min(max((left + right) / 2, wide / 2 + 2), sheet.width - wide / 2 - 2)
    y = bottom - 6 - tall / 2 if framed else (top + bottom) / 2
    if framed:
        sheet.add_box(x - wide / 2, y - tall / 2, wide, tall, "paper", "ink", 1.5, linestyle="dashed", zorder=1e6)
    for number, line in enumerate(lines, 1):
        height = y - tall / 2 + 19 * number - 5.5
        sheet.write(x, height, line, size=13.0, bold=framed, anchor="center", zorder=1e6)
    sheet.text_boxes.append(Bbox.from_bounds(x - wide / 2, y - tall / 2, wide, tall))


def _paint_mark(mark: Any, plot: Plot, sheet: Sheet, unit: float) -> tuple[list[Places], list[Any]]:
    if isinstance(mark, Image):
        x, y = np.sort(np.asarray(mark.points, dtype=np.float64).reshape(2, 2), axis=0).T
        image = AxesImage(plot, interpolation="nearest", origin="upper", extent=(x[0], x[1], y[0], y[1]))
        table = np.rint(255 * to_rgba_array([colour(role) for role in mark.palette])).astype(np.uint8)
        image.set_data(table[np.asarray(mark.cells, dtype=int).reshape(-1, mark.columns)])
        return [], [image]
    if isinstance(mark, Band):
        rows = np.asarray(mark.points, dtype=np.float64).reshape(-1, 3)
        pairs = _pieces(np.hstack([sheet.places(plot, rows[:, :2]), sheet.places(plot, rows[:, ::2])]))
        edges = [edge for pair in pairs for edge in (pair[:, :2], pair[:, 2:])]
        around = [np.vstack([pair[:, :2], pair[::-1, 2:]]) for pair in pairs]
        return edges, _patches(mark, around, sheet, 0.0) + _patches(mark, edges, sheet, mark.width, closed=False)
    places = sheet.places(plot, mark.points)
    if isinstance(mark, Dots):
        left, top, right, bottom = sheet.edges(plot)
        inside = places[(places > (left - 1, top - 1)).all(axis=1) & (places < (right + 1, bottom + 1)).all(axis=1)]
        style: dict[str, Any] = {"linestyle": "none", "marker": _MARKERS[mark.shape], "transform": sheet.pixels}
        style |= {"markersize": mark.size * POINTS_PER_PX, "markerfacecolor": colour(mark.fill)}
        style |= {"markeredgecolor": colour(mark.stroke or mark.fill or "paper")}
        return [inside], [Line2D(*inside.T, markeredgewidth=mark.width * POINTS_PER_PX * bool(mark.stroke), **style)]
    if isinstance(mark, Line):
        pieces = _pieces(places)
        return pieces, _patches(mark, pieces, sheet, mark.width, closed=False)
    is_arrow = isinstance(mark, Arrow)
    pieces = _pieces(_arrow_corners(places[0], places[1], unit * mark.width) if is_arrow else places)
    patches = _patches(mark, pieces, sheet, mark.line if is_arrow else mark.width)
    return [np.vstack([piece, piece[:1]]) for piece in pieces], patches


def _arrow_corners(tail: Places, head: Places, width: float) -> Places:
    length = math.dist(tail, head)
    if not 0.5 < length < 1e9:
        return np.zeros((0, 2))
    along = (head - tail) / length
    aside = np.array([-along[1], along[0]])
    tip = min(length * 0.7, 1.7 * width)
    neck, half, wing = head - along * tip, aside * width / 2, aside * min(width, tip * 0.6 + width / 4)
    return np.array([tail + half, neck + half, neck + wing, head, neck - wing, neck - half, tail - half])


def _patches(mark: Any, pieces: list[Places], sheet: Sheet, width: float, *, closed: bool = True) -> list[PathPatch]:
    """Return a list of one patch, filled and hatched only if ``closed``, or an empty list if there are no pieces."""
    if not pieces:
        return []
    rings = ([*piece, piece[0]] if closed else piece for piece in pieces)
    outline = Outline.make_compound_path(*(Outline(ring, closed=closed) for ring in rings))
    hatch = mark.hatch if closed else ""
    style: dict[str, Any] = {"capstyle": "butt", "joinstyle": "round", "linestyle": _DASHES[mark.dash]}
    style |= {"facecolor": colour(mark.fill if closed else ""), "edgecolor": colour(mark.stroke or "ink")}
    style["hatch"] = hatch + hatch[:1] or None  # a little denser than matplotlib's default
    line = width * POINTS_PER_PX * bool(mark.stroke)
    return [PathPatch(outline, linewidth=line, transform=sheet.pixels, **style)]


def _pieces(rows: Places) -> list[Places]:
    parts = np.split(rows, np.flatnonzero(~np.isfinite(rows).all(axis=1)))
    return [piece for part in parts if len(piece := part[np.isfinite(part).all(axis=1)])]

"""Drawings as PNG and SVG: matplotlib's Axes lay them out, at a size that is given. It knows nothing of torch.

The figure is a canvas of its own: nothing here touches ``pyplot`` or a learner's rcParams.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes as Plot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import BboxImage
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.transforms import Bbox, IdentityTransform
from PIL import Image as Picture

from .labels import Labels
from .listing import Listing, paint_listing
from .marks import DASHES, EDGE, SHAPES, Area, Arrow, Band, Dots, Drawing, Image, Line, Mark, Text
from .palette import colour
from .plots import INCH, POINT, Sheet, add_plots, write

_INK, _GREY = colour("ink"), colour("grey")
_LOOK: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "text.color": _INK,
    "axes.edgecolor": _GREY,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "axes.xmargin": 0.0,
    "axes.ymargin": 0.0,
    "xtick.color": _GREY,
    "ytick.color": _GREY,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "lines.linewidth": 1.8,
}
"""What is not as matplotlib has it; a learner's own rcParams (dark_background, usetex, xkcd) change nothing."""


def own_look() -> AbstractContextManager[None]:
    """Make artists with the settings of this module, whatever the learner's rcParams say."""
    return matplotlib.style.context(["default", _LOOK])


_MARKERS = dict(zip(SHAPES, "oos^vDx+<>*", strict=True))
_DASHES: dict[str, Any] = dict(zip(DASHES, ["solid", (0, (4, 2.5)), (0, (1.2, 1.8)), (0, (6, 2, 1.2, 2))], strict=True))
_COLOURS = 256
_ROWS = 16  # of pixels that are counted at once
_THINNEST, _THICKEST = 5.0, 18.0  # CSS pixels across a usual arrow


class Placed(NamedTuple):
    """A Drawing or the loop, with its place and its size on the sheet in CSS pixels."""

    drawing: Drawing | Listing
    left: float
    top: float
    width: float
    height: float


_APART = 10.0  # CSS pixels between what stands beside, and the panels


def in_rows(
    drawings: Sequence[Drawing | Listing],
    columns: int,
    size: tuple[float, float],
    *,
    beside: Listing | None = None,
    above: Listing | None = None,
    last: float = 0.0,
) -> list[Placed]:
    """Place Drawings left to right and top to bottom, ``columns`` a row, each of one ``size``; the last ``last`` wide.

    ``beside`` stands at the left of all rows, ``above`` at the top. Raises ValueError for less than one column.
    """
    if columns < 1:
        raise ValueError(f"columns must be at least 1, got {columns}")
    width, height = size
    left = beside.width + _APART if beside is not None else 0.0
    top = above.height if above is not None else 0.0
    placed = [Placed(above, 0.0, 0.0, above.width, above.height)] if above is not None else []
    placed += [Placed(beside, 0.0, top, beside.width, beside.height)] if beside is not None else []
    for begin in range(0, len(drawings), columns):
        x, tall = left, 0.0
        for number, drawing in enumerate(drawings[begin : begin + columns], begin):
            wide = last if last and number == len(drawings) - 1 else width
            high = drawing.height if isinstance(drawing, Listing) else height
            wide = drawing.width if isinstance(drawing, Listing) else wide
            placed.append(Placed(drawing, x, top, wide, high))
            x, tall = x + wide + (_APART if isinstance(drawing, Listing) else 0.0), max(tall, high)
        top += tall
    return placed


def to_png(placed: Sequence[Placed], density: float = 2.0) -> bytes:
    """Paint a sheet, ``density`` pixels for each CSS pixel; return a PNG with few colours."""
    with own_look():
        figure = _figure(placed, density)
        canvas: Any = FigureCanvasAgg(figure)  # matplotlib has no types for it
        canvas.draw()
    indices, table = _few_colours(np.asarray(canvas.buffer_rgba())[..., :3])
    vars(canvas.renderer).clear()  # every text holds the renderer, and its pixels would wait for a garbage collection
    figure.clear()  # figure and canvas hold each other
    return _encoded(indices, table)


def to_svg(placed: Sequence[Placed]) -> str:
    """Paint a sheet as ``to_png`` does; return SVG, the same text for the same Drawings."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # only who saves SVG needs it

    out = io.StringIO()
    with own_look(), matplotlib.rc_context({"svg.hashsalt": "gradlab", "svg.fonttype": "path"}):
        canvas: Any = FigureCanvasSVG(_figure(placed, 1.0))
        canvas.print_svg(out, metadata={"Date": None, "Creator": None})
    return out.getvalue()


def small_png(picture: Picture.Image) -> bytes:
    """Return an RGB picture as a PNG of at most 256 colours, its most frequent ones exactly, never dithered."""
    return _encoded(*_few_colours(np.asarray(picture)))


def _few_colours(pixels: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return the number of each pixel's colour, and the table of these colours."""
    blocks = [pixels[at : at + _ROWS] for at in range(0, len(pixels), _ROWS)]  # a sheet at once would take 100 MB
    codes = np.unique(np.concatenate([np.unique(_codes(block)) for block in blocks]))
    counts = np.zeros(len(codes), dtype=np.int64)
    for block in blocks:
        counts += np.bincount(np.searchsorted(codes, _codes(block)).ravel(), minlength=len(codes))
    frequent = codes[np.argsort(-counts, kind="stable")[:_COLOURS]]
    every, known = (np.stack([c >> 16, c >> 8 & 255, c & 255], 1).astype(np.float32) for c in (codes, frequent))
    # |a - b|^2 without its part |a|^2, which no choice of b changes; all colours at once would take 12 MB
    size = (known**2).sum(axis=1)
    parts = (every[at : at + _COLOURS] for at in range(0, len(every), _COLOURS))
    nearest = np.concatenate([(size - 2 * part @ known.T).argmin(axis=1).astype(np.uint8) for part in parts])
    indices = np.empty(pixels.shape[:2], dtype=np.uint8)
    for at, block in enumerate(blocks):
        indices[at * _ROWS : (at + 1) * _ROWS] = nearest[np.searchsorted(codes, _codes(block))]
    return indices, known.astype(np.uint8)


def _encoded(indices: npt.NDArray[np.uint8], table: npt.NDArray[np.uint8]) -> bytes:
    few = Picture.fromarray(indices)
    few.putpalette(table.tobytes())
    out = io.BytesIO()
    few.save(out, "PNG", compress_level=7)  # a twelfth more bytes than at the highest level, in a sixth of the time
    return out.getvalue()


def _codes(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.integer[Any]]:
    """Return one number for the colour of each pixel."""
    return pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)


def _figure(placed: Sequence[Placed], density: float) -> Figure:
    wide = max((each.left + each.width for each in placed), default=1)
    tall = max((each.top + each.height for each in placed), default=1)
    figure = Figure(figsize=(wide / INCH, tall / INCH), dpi=INCH * density, facecolor=colour("paper"))
    for drawing, left, top, width, height in placed:
        sheet = Sheet(figure, left, top, width, height, density)
        if isinstance(drawing, Listing):
            paint_listing(drawing, sheet)
        else:
            _paint(drawing, sheet)
    return figure


def _paint(drawing: Drawing, sheet: Sheet) -> None:
    """Paint one Drawing on its part of the sheet."""
    plots = add_plots(drawing, sheet)
    strength = 0.4 if drawing.faint else 1.0
    unit = _arrow_unit(drawing, plots[0], sheet)
    labels = Labels(sheet, plots)
    for order, mark in enumerate(drawing.marks):
        if isinstance(mark, Text):
            continue
        plot = plots[getattr(mark, "axes", 0)]
        for artist in _PAINTERS[type(mark)](mark, plot, unit):
            artist.set_zorder(order + 3)  # in the order of the marks, in front of the axes
            artist.set_alpha(strength)
            plot.add_artist(artist)
            labels.keep_free(mark, artist, plot)
    labels.place([mark for mark in drawing.marks if isinstance(mark, Text)], len(drawing.marks) + 3)
    if drawing.notice:
        _notice(drawing, plots[0], sheet, labels)


def _notice(drawing: Drawing, plot: Plot, sheet: Sheet, labels: Labels) -> None:
    """Write a sentence into the axes, in a frame where something else is there."""
    box = plot.get_position()
    framed = bool(drawing.marks)
    look: dict[str, Any] = {"boxstyle": "square,pad=0.4", "facecolor": colour("paper"), "edgecolor": _INK}
    write(
        sheet.figure,
        (box.x0 + box.x1) / 2,
        box.y0 + (30 / INCH / sheet.figure.get_figheight() if framed else box.height / 2),
        "\n".join(labels.wrapped(drawing.notice, box.width * sheet.figure.get_figwidth() * INCH - 24, 13.0)),
        size=13.0,
        bold=framed,
        anchor="center",
        zorder=1e6,
        bbox={**look, "linestyle": "dashed"} if framed else None,
        transform=sheet.figure.transFigure,
    )


def _arrow_unit(drawing: Drawing, plot: Plot, sheet: Sheet) -> float:
    """Return the pixels across a usual arrow."""
    longest = max((_length(_places(mark, plot)) for mark in drawing.marks if isinstance(mark, Arrow)), default=0.0)
    across = max(min(min(sheet.width, sheet.height) / 32, longest / sheet.density / 8, _THICKEST), _THINNEST)
    return across * sheet.density


def _length(ends: npt.NDArray[np.float64]) -> float:
    return float(np.hypot(*(ends[1] - ends[0])))


def _points(mark: Any, each: int, plot: Plot) -> npt.NDArray[np.float64]:
    """Return the points of a mark as rows; what is at the edge of the axes, on the edge."""
    rows = np.array(mark.points, dtype=np.float64).reshape(-1, each)
    for column in range(each):
        low, high = plot.get_xlim() if column == 0 else plot.get_ylim()
        rows[rows[:, column] >= EDGE, column] = high
        rows[rows[:, column] <= -EDGE, column] = low
    return rows


def _places(mark: Any, plot: Plot, each: int = 2) -> npt.NDArray[np.float64]:
    """Return the points of a mark in pixels of the sheet."""
    return np.asarray(plot.transData.transform(_points(mark, each, plot)))


def _line(mark: Line, plot: Plot, unit: float) -> list[Any]:
    rows = _points(mark, 2, plot)
    look: dict[str, Any] = {"color": colour(mark.stroke), "linestyle": _DASHES[mark.dash]}
    return [Line2D(rows[:, 0], rows[:, 1], linewidth=mark.width * POINT, dash_capstyle="butt", **look)]


def _area(mark: Area, plot: Plot, unit: float) -> list[Any]:
    pieces = _pieces(_points(mark, 2, plot))
    outline = _outline(pieces, closed=True)
    return _filled(mark, outline, outline, mark.width, plot.transData) if pieces else []


def _band(mark: Band, plot: Plot, unit: float) -> list[Any]:
    pieces = _pieces(_points(mark, 3, plot))
    if not pieces:
        return []
    around = [np.vstack([piece[:, :2], piece[::-1, ::2]]) for piece in pieces]
    edges = [edge for piece in pieces for edge in (piece[:, :2], piece[:, ::2])]
    return _filled(mark, _outline(around, closed=True), _outline(edges, closed=False), mark.width, plot.transData)


def _arrow(mark: Arrow, plot: Plot, unit: float) -> list[Any]:
    tail, head = _places(mark, plot)
    width, length = unit * mark.width, _length(np.array([tail, head]))
    if not 0.5 < length < 1e9:
        return []
    along = (head - tail) / length
    aside = np.array([-along[1], along[0]])
    tip = min(length * 0.7, 1.7 * width)
    neck, half, wing = head - along * tip, aside * width / 2, aside * min(width, tip * 0.6 + width / 4)
    corners = np.array([tail + half, neck + half, neck + wing, head, neck - wing, neck - half, tail - half])
    outline = _outline([corners], closed=True)
    return _filled(mark, outline, outline, mark.line, IdentityTransform())


def _filled(mark: Area | Band | Arrow, area: Outline, edges: Outline, width: float, transform: Any) -> list[Any]:
    """Paint the area, then its hatch in the colour of the edge, else in ink, then the edge."""
    artists: list[Any] = []
    if mark.fill:
        artists.append(PathPatch(area, facecolor=colour(mark.fill), edgecolor="none", linewidth=0))
    if mark.hatch:
        lines = PathPatch(area, facecolor="none", edgecolor=colour(mark.stroke or "ink"), linewidth=0)
        lines.set_hatch(mark.hatch + mark.hatch[0])  # a little denser than matplotlib's own
        artists.append(lines)
    if mark.stroke:
        look: dict[str, Any] = {"edgecolor": colour(mark.stroke), "facecolor": "none", "capstyle": "butt"}
        dash = _DASHES[getattr(mark, "dash", "")]
        artists.append(PathPatch(edges, linewidth=width * POINT, linestyle=dash, joinstyle="round", **look))
    for artist in artists:
        artist.set_transform(transform)
    return artists


def _dots(mark: Dots, plot: Plot, unit: float) -> list[Any]:
    rows = _points(mark, 2, plot)
    edge = mark.stroke or mark.fill
    line = Line2D(rows[:, 0], rows[:, 1], linestyle="none", marker=_MARKERS[mark.shape], clip_on=False)
    line.set_markersize(mark.size * POINT)
    line.set_markerfacecolor(colour(mark.fill) if mark.fill else "none")
    line.set_markeredgecolor(colour(edge) if edge else "none")
    line.set_markeredgewidth(mark.width * POINT if mark.stroke else 0.0)
    return [line]


def _image(mark: Image, plot: Plot, unit: float) -> list[Any]:
    cells = np.asarray(mark.cells, dtype=int).reshape(-1, mark.columns)
    hexes = [colour(role) for role in mark.palette]
    table = np.array([[int(each[at : at + 2], 16) for at in (1, 3, 5)] for each in hexes], dtype=np.uint8)
    (x0, y0), (x1, y1) = _places(mark, plot)
    box = Bbox.from_extents(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
    image = BboxImage(box, interpolation="nearest", origin="upper")
    image.set_data(table[cells])
    return [image]


def _pieces(points: npt.NDArray[np.float64]) -> list[Any]:
    """Cut points where the pen is lifted."""
    sound = np.isfinite(points).all(axis=1)
    pieces = np.split(points, np.flatnonzero(~sound))
    pieces = [piece[np.isfinite(piece).all(axis=1)] for piece in pieces]
    return [piece for piece in pieces if len(piece)]


def _outline(pieces: list[Any], *, closed: bool) -> Outline:
    corners, codes = [], []
    for piece in pieces:
        corners.append(np.vstack([piece, piece[:1]]) if closed else piece)
        codes += [Outline.MOVETO, *[Outline.LINETO] * (len(piece) - 1), *([Outline.CLOSEPOLY] if closed else [])]
    return Outline(np.concatenate(corners), np.array(codes, dtype=Outline.code_type))


_PAINTERS: dict[type[Mark], Callable[[Any, Plot, float], list[Any]]] = {
    Line: _line, Area: _area, Band: _band, Arrow: _arrow, Dots: _dots, Image: _image,
}  # fmt: skip

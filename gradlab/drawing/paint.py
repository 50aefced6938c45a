"""matplotlib paints Drawings on white paper, for stills: every mark at its own coordinates, in this package's look."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import BboxImage
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.text import Text as Lettering
from matplotlib.transforms import Affine2D, Bbox, TransformedBbox
from PIL import Image as Picture

from .marks import DASHES, SHAPES, Band, CodeText, Dots, Drawing, Image, Mark, Path, Text
from .palette import colour

_INK, _GREY = colour("ink"), colour("grey")
_LOOK: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "text.color": _INK,
    "axes.edgecolor": _GREY,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.xmargin": 0.0,
    "axes.ymargin": 0.0,
    "xtick.color": _GREY,
    "ytick.color": _GREY,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "xtick.labelsize": 10.0,
    "ytick.labelsize": 10.0,
    "lines.linewidth": 1.8,
}
"""What is not as matplotlib has it; a learner's own rcParams (dark_background, usetex, xkcd) change nothing."""


def own_look() -> AbstractContextManager[None]:
    """Make artists with the settings of this module, whatever the learner's rcParams say."""
    return matplotlib.style.context(["default", _LOOK])


_INCH = 96.0  # CSS pixels
_POINT = 72 / _INCH  # points in a CSS pixel
_MARKERS = dict(zip(SHAPES, "oos^vDx+<>*", strict=True))
_DASHES: dict[str, Any] = dict(zip(DASHES, ["solid", (0, (4, 2.5)), (0, (1.2, 1.8)), (0, (6, 2, 1.2, 2))], strict=True))
_COLOURS = 256
_APART = 10.0  # CSS pixels between what stands beside, and the rows
_ROWS = 16  # of pixels that are counted at once


def to_png(
    drawings: Sequence[Drawing],
    columns: int = 2,
    density: float = 2.0,
    *,
    beside: Drawing | None = None,
    above: Drawing | None = None,
) -> bytes:
    """Paint Drawings left to right and top to bottom, ``columns`` a row; return a PNG with few colours.

    ``density`` pixels are painted for each CSS pixel. ``beside`` stands
    at the left of all rows, ``above`` at the top. Raises ValueError for less than one column.
    """
    figure = _figure(drawings, columns, density, beside, above)
    canvas: Any = FigureCanvasAgg(figure)  # matplotlib has no types for it
    with own_look():
        canvas.draw()
    numbers, table = _few_colours(np.asarray(canvas.buffer_rgba())[..., :3])
    vars(canvas.renderer).clear()  # every text holds the renderer, and its pixels would wait for a garbage collection
    figure.clear()  # figure and canvas hold each other
    return _encoded(numbers, table)


def to_svg(
    drawings: Sequence[Drawing], columns: int = 2, *, beside: Drawing | None = None, above: Drawing | None = None
) -> str:
    """Paint Drawings as ``to_png`` does; return SVG, the same text for the same Drawings."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # only who saves SVG needs it

    figure = _figure(drawings, columns, 1.0, beside, above)
    canvas: Any = FigureCanvasSVG(figure)
    out = io.StringIO()
    with own_look(), matplotlib.rc_context({"svg.hashsalt": "gradlab", "svg.fonttype": "path"}):
        canvas.print_svg(out, metadata={"Date": None, "Creator": None})
    return out.getvalue()


def small_png(picture: Picture.Image) -> bytes:
    """Return an RGB picture as a PNG of at most 256 colours, its most frequent ones exactly, never dithered."""
    return _encoded(*_few_colours(np.asarray(picture)))


def _few_colours(pixels: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return the number of each pixel's colour, and the table of these colours."""
    blocks = [pixels[at : at + _ROWS] for at in range(0, len(pixels), _ROWS)]  # a sheet at once would take 100 MB
    found = np.unique(np.concatenate([np.unique(_codes(block)) for block in blocks]))
    counts = np.zeros(len(found), dtype=np.int64)
    for block in blocks:
        counts += np.bincount(np.searchsorted(found, _codes(block)).ravel(), minlength=len(found))
    kept = found[np.argsort(-counts, kind="stable")[:_COLOURS]]
    every, known = (np.stack([c >> 16, c >> 8 & 255, c & 255], 1).astype(np.float32) for c in (found, kept))
    # |a - b|^2 without its part |a|^2, which no choice of b changes; all colours at once would take 12 MB
    size = (known**2).sum(axis=1)
    parts = (every[at : at + _COLOURS] for at in range(0, len(every), _COLOURS))
    nearest = np.concatenate([(size - 2 * part @ known.T).argmin(axis=1).astype(np.uint8) for part in parts])
    numbers = np.empty(pixels.shape[:2], dtype=np.uint8)
    for at, block in enumerate(blocks):
        numbers[at * _ROWS : (at + 1) * _ROWS] = nearest[np.searchsorted(found, _codes(block))]
    return numbers, known.astype(np.uint8)


def _encoded(numbers: npt.NDArray[np.uint8], table: npt.NDArray[np.uint8]) -> bytes:
    few = Picture.fromarray(numbers)
    few.putpalette(table.tobytes())
    out = io.BytesIO()
    few.save(out, "PNG", compress_level=7)  # a twelfth more bytes than at the highest level, in a sixth of the time
    return out.getvalue()


def _codes(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.integer[Any]]:
    """Return one number for the colour of each pixel."""
    return pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)


def _figure(
    drawings: Sequence[Drawing], columns: int, density: float, beside: Drawing | None, above: Drawing | None
) -> Figure:
    if columns < 1:
        raise ValueError(f"columns must be at least 1, got {columns}")
    top = float(above.height) if above is not None else 0.0
    begin = beside.width + _APART if beside is not None else 0.0
    placed = [(each, 0.0, at) for each, at in ((above, 0.0), (beside, top)) if each is not None]
    for row in (drawings[at : at + columns] for at in range(0, len(drawings), columns)):
        left = begin
        for drawing in row:
            placed.append((drawing, left, top))
            left += drawing.width
        top += max(each.height for each in row)
    wide = max((left + each.width for each, left, _ in placed), default=1)
    tall = max((top + each.height for each, _, top in placed), default=1)
    with own_look():
        figure = Figure(figsize=(wide / _INCH, tall / _INCH), dpi=_INCH * density, facecolor=colour("paper"))
        order = 0
        for drawing, left, top in placed:
            order = _paint(figure, drawing, left, top, (wide, tall), order)
    return figure


def _paint(figure: Figure, drawing: Drawing, left: float, top: float, sheet: tuple[float, float], order: int) -> int:
    """Paint one Drawing with its upper left corner at a place on the sheet; return how many marks there are now."""
    wide, tall = sheet
    to_sheet: Any = Affine2D().translate(left, top).scale(1 / wide, -1 / tall).translate(0, 1) + figure.transFigure
    for mark in drawing.marks:
        for artist in _PAINTERS[type(mark)](mark, to_sheet):
            artist.set_zorder(order := order + 1)  # in the order of the marks, whatever kind they are
            artist.set_clip_on(False)
            figure.add_artist(artist)
    return order


def _path(mark: Path, to_sheet: Any) -> list[Artist]:
    pieces = _pieces(np.asarray(mark.points, dtype=float).reshape(-1, 2))
    if not pieces or not (mark.stroke or mark.fill or mark.hatch):
        return []
    outline = _outline(pieces, closed=bool(mark.fill or mark.hatch))
    return _area(mark, outline, outline, to_sheet)


def _band(mark: Band, to_sheet: Any) -> list[Artist]:
    pieces = _pieces(np.asarray(mark.points, dtype=float).reshape(-1, 3))
    if not pieces:
        return []
    around = [np.vstack([piece[:, :2], piece[::-1, ::2]]) for piece in pieces]
    edges = [edge for piece in pieces for edge in (piece[:, :2], piece[:, ::2])]
    return _area(mark, _outline(around, closed=True), _outline(edges, closed=False), to_sheet)


def _area(mark: Path | Band, area: Outline, edges: Outline, to_sheet: Any) -> list[Artist]:
    """Paint the area, then its hatch in the colour of the edge, else in ink, then the edge."""
    artists: list[Artist] = []
    if mark.fill:
        fill = colour(mark.fill)
        artists.append(PathPatch(area, facecolor=fill, edgecolor="none", linewidth=0, transform=to_sheet))
    if mark.hatch:
        strong = colour(mark.stroke or "ink")
        lines = PathPatch(area, facecolor="none", edgecolor=strong, linewidth=0, transform=to_sheet)
        lines.set_hatch(mark.hatch + mark.hatch[0])  # a little denser than matplotlib's own
        artists.append(lines)
    if mark.stroke:
        dash = _DASHES[mark.dash if isinstance(mark, Path) else ""]
        look: dict[str, Any] = {"linewidth": mark.width * _POINT, "linestyle": dash, "edgecolor": colour(mark.stroke)}
        look |= {"facecolor": "none", "capstyle": "butt", "joinstyle": "round"}
        artists.append(PathPatch(edges, transform=to_sheet, **look))
    return artists


def _dots(mark: Dots, to_sheet: Any) -> list[Artist]:
    places = np.asarray(mark.points, dtype=float).reshape(-1, 2)
    edge = mark.stroke or mark.fill
    line = Line2D(places[:, 0], places[:, 1], linestyle="none", marker=_MARKERS[mark.shape], transform=to_sheet)
    line.set_markersize(mark.size * _POINT)
    line.set_markerfacecolor(colour(mark.fill) if mark.fill else "none")
    line.set_markeredgecolor(colour(edge) if edge else "none")
    line.set_markeredgewidth(mark.width * _POINT if mark.stroke else 0.0)
    return [line]


def _text(mark: Text, to_sheet: Any) -> list[Artist]:
    side: Any = {"start": "left", "middle": "center", "end": "right"}[mark.anchor]
    text = Lettering(
        mark.x,
        mark.y,
        mark.text,
        color=colour(mark.role),
        fontsize=mark.size * _POINT,
        fontfamily="DejaVu Sans Mono" if isinstance(mark, CodeText) else "DejaVu Sans",
        fontweight="bold" if mark.bold else "normal",
        horizontalalignment=side,
        verticalalignment="center",
        rotation=mark.angle,
        rotation_mode="anchor",
        parse_math=False,
        transform=to_sheet,
    )
    if mark.backed:
        text.set_bbox({"boxstyle": "square,pad=0.05", "facecolor": colour("paper"), "edgecolor": "none"})
    return [text]


def _image(mark: Image, to_sheet: Any) -> list[Artist]:
    cells = np.asarray(mark.cells, dtype=int).reshape(-1, mark.columns)
    hexes = [colour(role) for role in mark.palette]
    table = np.array([[int(each[at : at + 2], 16) for at in (1, 3, 5)] for each in hexes], dtype=np.uint8)
    box = TransformedBbox(Bbox.from_extents(mark.x, mark.y, mark.x + mark.width, mark.y + mark.height), to_sheet)
    image = BboxImage(box, interpolation="nearest", origin="upper")
    image.set_data(table[cells])
    return [image]


def _pieces(points: np.ndarray[Any, np.dtype[np.float64]]) -> list[Any]:
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


_PAINTERS: dict[type[Mark], Callable[[Any, Any], list[Artist]]] = {
    Path: _path, Band: _band, Dots: _dots, Text: _text, CodeText: _text, Image: _image,
}  # fmt: skip

"""Drawings of panels: axes, and marks in data coordinates whose colours are roles.

A Drawing has no pixels and no fonts. It is laid out in the browser (``front/layout.js``), at the size that the page
gives it, and by matplotlib's Axes (``paint.py``). Marks are cut off at the limits of the axes; a coordinate of
``AXES_EDGE`` or ``-AXES_EDGE`` is at the edge of the axes. A colour is a *role* ("ink", "weights"), for which the
painter has a colour in each theme; ``"weights/50"`` is that colour at 50 % over the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

DASHES = ("", "dashed", "dotted", "dashdot")
SHAPES = ("circle", "ring", "triangle", "down", "diamond", "cross", "plus")
AXES_EDGE = 1e300
"""The coordinate of the right or upper edge of the axes at any limits; ``-AXES_EDGE`` is the left or lower edge."""


class AxisSpan(NamedTuple):
    """A label below a part of the x axis, such as a statement of the loop: the first of ``texts`` that fits."""

    low: float
    high: float
    texts: tuple[str, ...]
    rank: int = 0  # low ranks are written first, and within a rank the widest label
    bracket: bool = False  # whether a bracket shows its extent


@dataclass(frozen=True, slots=True)
class Axis:
    """Limits, title (``words``) and format of the ticks of one axis."""

    low: float = 0.0
    high: float = 1.0
    log: bool = False
    words: str = ""
    ticks: str = "number"
    """Format: "number", "updates", "bytes", "powers" (of 2), "shares" (of 1), "lines" (no numbers) or "none"."""
    spans: tuple[AxisSpan, ...] = ()
    """Labels in place of ticks; with ``ticks="slanted"`` they are slanted."""


@dataclass(frozen=True, slots=True)
class Axes:
    """An x axis and a y axis in a part of a panel."""

    x: Axis = Axis()
    y: Axis = Axis()
    equal: str = ""
    """For equal units in x and y: "fit" makes the axes smaller, "fill" shows more of one range; "" for any units."""
    zooms: bool = False  # whether the reader can zoom to a range of x, to which y then adapts
    share: float = 1.0  # of the panel's height, relative to the shares of the panel's other axes
    caption: str = ""  # above the axes


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of the key: a swatch and its label, which is the first, second or last of ``texts``, as space allows."""

    texts: tuple[str, ...]
    fill: str = ""
    stroke: str = ""
    width: float = 1.0
    hatch: str = ""
    dash: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """The base class of marks."""

    id: str
    """Unique within a Drawing; it stays the same from frame to frame, so that only changes of the mark are sent."""


@dataclass(frozen=True, slots=True)
class Line(Mark):
    """A line through ``points`` (x0, y0, x1, y1, ...); a pair of NaN is a gap."""

    points: Any
    stroke: str = "ink"
    width: float = 1.5
    dash: str = ""
    words: str = ""
    readout: str = ""  # text for the point nearest to the pointer: ``"update {x}: loss {y}"``
    axes: int = 0  # index into ``Drawing.axes``


@dataclass(frozen=True, slots=True)
class Area(Mark):
    """The inside of a closed line through ``points``; a pair of NaN begins another part."""

    points: Any
    fill: str = ""
    stroke: str = ""
    width: float = 1.0
    dash: str = ""
    hatch: str = ""
    words: str = ""
    press: str = ""  # message to the kernel when the mark is pressed, "" for none: ``"batch 38"``
    moves: bool = False
    """Whether the browser animates changes between two moments: new marks slide in, removed marks are swept out.

    Marks with the same ``press`` or, without one, the same id are the same mark at both moments.
    """
    axes: int = 0


@dataclass(frozen=True, slots=True)
class Band(Area):
    """The area between two edges; ``points`` are triples (x, y of the lower edge, y of the upper edge)."""


@dataclass(frozen=True, slots=True)
class Dots(Mark):
    """The same small shape at each of ``points`` (x0, y0, x1, y1, ...), ``size`` CSS pixels across."""

    points: Any
    shape: str = "circle"
    size: float = 6.0
    fill: str = ""
    stroke: str = ""
    width: float = 1.0
    words: str = ""
    readout: str = ""
    drag: str = ""
    """The name with which the kernel receives the point it was dragged to; ``"weights"`` begins the run again there."""
    moves: bool = False  # as in Area
    axes: int = 0


@dataclass(frozen=True, slots=True)
class Arrow(Area):
    """An arrow from one point to another (``points``: x0, y0, x1, y1); ``width`` is in units of the default width."""

    stroke: str = "ink"
    line: float = 1.0  # width of its outline in CSS pixels


@dataclass(frozen=True, slots=True)
class Text(Mark):
    """A text at a point or at another mark: the first of ``texts`` that fits, at the position where it hides the least.

    ``where`` lists the allowed positions, the best first: "around", "right", "left", "above", "below" or "center" of
    the point; "top" for a row below the upper edge of the axes; "margin" for beside their right edge, where texts are
    kept apart; "beside" or "on" for positions at the mark whose id is ``of``.
    """

    texts: tuple[str, ...]
    x: float = 0.0
    y: float = 0.0
    of: str = ""
    where: str = "around"
    role: str = "ink"
    size: float = 12.0
    bold: bool = False
    backed: bool = False  # whether it is on a patch of paper, to be readable on other marks
    clear: bool = False  # whether it is left out where it would hide a part of a mark
    swatch: Key | None = None  # shown before the text
    live: str = ""  # replaces ``texts`` in a live lab, where the reader can act on it: "drag me"
    words: str = ""
    axes: int = 0


@dataclass(frozen=True, slots=True)
class Image(Mark):
    """A grid of cells over a rectangle (``points``: two corners); ``cells`` are indices into ``palette``, its roles."""

    points: Any
    columns: int
    cells: Any  # row by row from the top
    palette: tuple[str, ...]
    words: str = ""


@dataclass(frozen=True)
class Drawing:
    """One panel at one moment: ``marks`` from back to front, on one or more ``axes`` from top to bottom."""

    title: str
    marks: Sequence[Mark] = ()
    axes: tuple[Axes, ...] = (Axes(),)
    words: str = ""  # a description of the panel for screen readers
    corner: tuple[str, ...] = ()  # text at the right of the title: the first that fits
    corner_role: str = "ink"
    notes: tuple[tuple[str, ...], ...] = ()  # lines below the title, each as the first of its texts that fits
    key: tuple[Key, ...] = ()
    notice: str = ""  # a sentence in the axes, framed if there are marks
    faint: bool = False  # whether it is painted pale, because it is out of date

    def find(self, id: str) -> Any:
        """Return the mark with this id. Raises KeyError if there is none."""
        for mark in self.marks:
            if mark.id == id:
                return mark
        raise KeyError(f"no mark {id!r} in {self.title!r}; there are: {', '.join(mark.id for mark in self.marks)}")

    def texts(self) -> list[str]:
        """Return the title and the other texts of the Drawing, each in its longest form."""
        lines = [*self.corner[:1], *(note[0] for note in self.notes), *([self.notice] if self.notice else [])]
        return [self.title, *lines, *(mark.texts[0] for mark in self.marks if isinstance(mark, Text))]


@singledispatch
def draw(scene: Any) -> Drawing:
    """Return the Drawing of a scene, made by the function for its class. Raises TypeError for other objects."""
    kinds = ", ".join(kind.__name__ for kind in draw.registry if kind is not object)
    raise TypeError(f"scene must be one of {kinds}, got {type(scene).__name__}")

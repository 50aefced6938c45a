"""Drawings of panels: axes, and marks with data coordinates and with roles in place of colours.

A Drawing has no pixels and no fonts. ``front/layout.js`` lays it out in the browser, at its size on the page, and
``plots.py`` in a still picture. Lines and areas are cut off at the limits of the axes; a coordinate of
``AXES_EDGE`` or ``-AXES_EDGE`` is at the edge of the axes. A *role*, such as "ink" or "weights", names a colour that
each theme defines; ``"weights/50"`` is the colour of "weights" mixed with 50 % of the paper's colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

DASHES = ("", "dashed", "dotted", "dashdot")
SHAPES = ("circle", "ring", "triangle", "down", "diamond", "cross", "plus")
AXES_EDGE = 1e300  # coordinate of the right or upper edge of the axes; -AXES_EDGE is the opposite edge


class AxisSpan(NamedTuple):
    """A part of the x axis, such as a statement of the loop, and its label below: the first of ``texts`` that fits."""

    low: float
    high: float
    texts: tuple[str, ...]
    rank: int = 0  # lower ranks are written first, and wider spans come first within a rank
    bracket: bool = False  # whether a bracket shows the extent of the span


@dataclass(frozen=True, slots=True)
class Axis:
    """The limits, title (``words``) and tick format of one axis."""

    low: float = 0.0
    high: float = 1.0
    log: bool = False
    words: str = ""
    ticks: str = "number"  # or "updates", "bytes", "powers" (of 2), "shares" (of 1), "lines" (no numbers), "none"
    spans: tuple[AxisSpan, ...] = ()  # labels in place of ticks, slanted if ``ticks`` is "slanted"


@dataclass(frozen=True, slots=True)
class Axes:
    """An x axis and a y axis in a part of a panel."""

    x: Axis = Axis()
    y: Axis = Axis()
    equal: str = ""  # "fit" shrinks the axes and "fill" extends one range to make units equal; "" lets them differ
    zooms: bool = False  # whether the reader can zoom to a range of x, to which y then adapts
    share: float = 1.0  # share of the panel's height, in proportion to the shares of the other axes
    caption: str = ""  # text above the axes


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a key (legend): a swatch and a label, the first, second or last of ``texts``, as space allows."""

    texts: tuple[str, ...]
    fill: str = ""
    stroke: str = ""
    width: float = 1.0
    hatch: str = ""
    dash: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """The base class of everything that is drawn in the axes of a panel or next to them."""

    id: str
    """Unique within a Drawing; it stays the same from frame to frame, so that only changes of the mark are sent."""


@dataclass(frozen=True, slots=True)
class Line(Mark):
    """A line through ``points`` (x0, y0, x1, y1, ...); a pair of NaN is a gap."""

    points: Any
    stroke: str = "ink"
    width: float = 1.5
    dash: str = ""
    words: str = ""  # description of the mark, for its tooltip and for screen readers
    readout: str = ""  # description of the point nearest to the pointer, such as ``"update {x}: loss {y}"``
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
    press: str = ""  # message to the kernel when the mark is pressed, such as ``"batch 38"``, or ""
    moves: bool = False
    """Whether the browser animates changes between two moments: new marks slide in, removed marks slide out.

    Marks with the same ``press``, or with the same id if ``press`` is empty, are the same mark at both moments.
    """
    axes: int = 0


@dataclass(frozen=True, slots=True)
class Band(Area):
    """The area between two edges; ``points`` are triples (x, y of the lower edge, y of the upper edge)."""


@dataclass(frozen=True, slots=True)
class Dots(Mark):
    """Copies of a small shape, ``size`` CSS pixels across, at ``points`` (x0, y0, x1, y1, ...)."""

    points: Any
    shape: str = "circle"
    size: float = 6.0
    fill: str = ""
    stroke: str = ""
    width: float = 1.0
    words: str = ""
    readout: str = ""
    drag: str = ""  # name that the kernel gets with a drag's end point; "weights" restarts the run at this point
    moves: bool = False  # as in Area
    axes: int = 0


@dataclass(frozen=True, slots=True)
class Arrow(Area):
    """An arrow from one point to another (``points``: x0, y0, x1, y1); ``width`` is in units of the default width."""

    stroke: str = "ink"
    line: float = 1.0  # width of the outline in CSS pixels


@dataclass(frozen=True, slots=True)
class Text(Mark):
    """A label at a point or at another mark: the first of ``texts`` that fits, at the position where it hides least.

    ``where`` lists the allowed positions, the best first: "around", "right", "left", "above", "below" or "center", seen
    from the point; "top", a row below the upper edge of the axes; "margin", the space to the right of the axes, where
    labels are kept apart; "beside" or "on", a position at the mark whose id is ``of``.
    """

    texts: tuple[str, ...]
    x: float = 0.0
    y: float = 0.0
    of: str = ""
    where: str = "around"
    role: str = "ink"
    size: float = 12.0
    bold: bool = False
    backed: bool = False  # whether the label has a background in the paper's colour, to be readable on marks
    clear: bool = False  # whether the label is left out if it would hide a part of a mark
    swatch: Key | None = None  # shown before the label
    live: str = ""  # text that replaces ``texts`` in a live lab, such as "drag me"
    words: str = ""
    axes: int = 0


@dataclass(frozen=True, slots=True)
class Image(Mark):
    """A rectangle (``points``: two corners) of coloured cells; ``cells`` are indices into the roles in ``palette``."""

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
    corner: tuple[str, ...] = ()  # forms of a remark to the right of the title, of which the first that fits is shown
    corner_role: str = "ink"
    notes: tuple[tuple[str, ...], ...] = ()  # lines below the title, each with its forms; the first that fits is shown
    key: tuple[Key, ...] = ()
    notice: str = ""  # a sentence in the axes, framed if there are marks
    faint: bool = False  # whether the panel is painted pale, because it is out of date

    def find(self, id: str) -> Any:
        """Return the mark with this id. Raises KeyError if there is none."""
        for mark in self.marks:
            if mark.id == id:
                return mark
        raise KeyError(f"there is no mark {id!r} in {self.title!r}, only {', '.join(mark.id for mark in self.marks)}")

    def texts(self) -> list[str]:
        """Return the title, corner, notes, notice and Text marks of the Drawing, each in its longest form."""
        lines = [*self.corner[:1], *(note[0] for note in self.notes), *([self.notice] if self.notice else [])]
        return [self.title, *lines, *(mark.texts[0] for mark in self.marks if isinstance(mark, Text))]


@singledispatch
def draw(scene: Any) -> Drawing:
    """Return the Drawing of a scene, made by the function for its class. Raises TypeError if there is no function."""
    kinds = ", ".join(kind.__name__ for kind in draw.registry if kind is not object)
    raise TypeError(f"scene must be one of {kinds}, got {type(scene).__name__}")

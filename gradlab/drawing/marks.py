"""The marks of a panel: a Drawing is axes and marks in the numbers of its axes, with roles for colours, and texts.

A panel knows no pixels and no fonts. Two painters lay a Drawing out: the browser's (``front/layout.js``, at the size
that the page gives it) and matplotlib's own Axes (``paint.py``). Points beyond an axis are cut off there; a
coordinate of ``AXES_EDGE`` or ``-AXES_EDGE`` is the edge of the axes. A colour is a *role* ("ink", "weights"),
which the painter turns into a colour of its theme; ``"weights/50"`` is that colour at 50 % over the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

DASHES = ("", "dashed", "dotted", "dashdot")
SHAPES = ("circle", "ring", "triangle", "down", "diamond", "cross", "plus")
AXES_EDGE = 1e300
"""The coordinate of the right or upper edge of the axes, wherever it lies; ``-AXES_EDGE`` of the left or lower one."""


class AxisSpan(NamedTuple):
    """A label below a part of the x axis, such as a statement of the loop: the first of ``texts`` that fits."""

    low: float
    high: float
    texts: tuple[str, ...]
    rank: int = 0  # lower ones are written first, of one rank the widest
    bracket: bool = False  # whether a bracket shows how far it reaches


@dataclass(frozen=True, slots=True)
class Axis:
    """Limits, title (``words``) and format of the ticks of one axis."""

    low: float = 0.0
    high: float = 1.0
    log: bool = False
    words: str = ""
    ticks: str = "number"
    """"number", "updates", "bytes", "powers" (of 2), "shares" (of 1), "lines" (no numbers) or "none" (nothing)."""
    spans: tuple[AxisSpan, ...] = ()
    """Labels in place of ticks; with ``ticks="slanted"`` they are slanted."""


@dataclass(frozen=True, slots=True)
class Axes:
    """A pair of axes."""

    x: Axis = Axis()
    y: Axis = Axis()
    equal: str = ""
    """With a unit as long along both: "fit" makes the axes as large as that allows, "fill" shows more of one range."""
    zooms: bool = False  # whether a reader may choose a range of x; then y shows what lies in it
    share: float = 1.0  # of the panel's height, beside other axes of the same panel, which lie below
    caption: str = ""  # above the axes


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of the key: a swatch and its label, the first, second or last of ``texts``, as a row has room."""

    texts: tuple[str, ...]
    fill: str = ""
    stroke: str = ""
    width: float = 1.0
    hatch: str = ""
    dash: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """The field that all marks have."""

    id: str
    """Names the mark within its Drawing, the same from frame to frame, so that only what changes is sent."""


@dataclass(frozen=True, slots=True)
class Line(Mark):
    """A line through ``points`` (x0, y0, x1, y1, ...); a pair of NaN lifts the pen."""

    points: Any
    stroke: str = "ink"
    width: float = 1.5
    dash: str = ""
    words: str = ""
    readout: str = ""  # text for the point nearest to the pointer: ``"update {x}: loss {y}"``
    axes: int = 0  # which of the Drawing's axes it is on


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
    """Whether the browser shows how it got from one moment to the next: new marks slide in, those gone are swept out.

    Marks with the same ``press``, or else the same id, are the same thing at both moments.
    """
    axes: int = 0


@dataclass(frozen=True, slots=True)
class Band(Area):
    """The area between two edges, ``points`` being triples (x, y of the lower edge, y of the upper edge)."""


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
    """The name under which the kernel gets the point it is dragged to; ``"weights"``: to begin there."""
    moves: bool = False  # as of an Area
    axes: int = 0


@dataclass(frozen=True, slots=True)
class Arrow(Area):
    """An arrow from one point to another (``points``: x0, y0, x1, y1); ``width`` is in widths of the usual arrow."""

    stroke: str = "ink"
    line: float = 1.0  # CSS pixels of its outline


@dataclass(frozen=True, slots=True)
class Text(Mark):
    """A text at a point, or at another mark: the first of ``texts`` that fits is written, where it hides least.

    ``where`` names the positions that it may have, the best first: "around" the point, "right" of it, "left", "above",
    "below", at its "center"; "top" is a row below the upper edge of the axes; "margin" is beside the right edge, where
    all such texts are kept apart; "beside" and "on" are meant of the mark ``of``.
    """

    texts: tuple[str, ...]
    x: float = 0.0
    y: float = 0.0
    of: str = ""
    where: str = "around"
    role: str = "ink"
    size: float = 12.0
    bold: bool = False
    backed: bool = False  # on a patch of paper, where it stands on other marks
    clear: bool = False  # left out where it would hide a part of a mark
    swatch: Key | None = None  # shown before the text
    live: str = ""  # written instead where the reader can act on it: "drag me"
    words: str = ""
    axes: int = 0


@dataclass(frozen=True, slots=True)
class Image(Mark):
    """A grid of cells over a rectangle (``points``: two corners); ``cells`` are indices into ``palette``, roles."""

    points: Any
    columns: int
    cells: Any  # row by row from the top
    palette: tuple[str, ...]
    words: str = ""


@dataclass(frozen=True)
class Drawing:
    """One panel at one moment: ``marks`` from back to front, on one pair of axes or on several below each other."""

    title: str
    marks: Sequence[Mark] = ()
    axes: tuple[Axes, ...] = (Axes(),)
    words: str = ""  # the panel in a sentence or two, for screen readers
    corner: tuple[str, ...] = ()  # at the right of the title, the first of them that fits
    corner_role: str = "ink"
    notes: tuple[tuple[str, ...], ...] = ()  # lines below the title, of each the first text that fits
    key: tuple[Key, ...] = ()
    notice: str = ""  # a sentence in a frame in the middle of the axes; without marks, all there is
    faint: bool = False  # whether it is out of date: painted with a part of its strength

    def find(self, id: str) -> Any:
        """Return the mark of this id; KeyError when there is none."""
        for mark in self.marks:
            if mark.id == id:
                return mark
        raise KeyError(f"no mark {id!r} in {self.title!r}; there are: {', '.join(mark.id for mark in self.marks)}")

    def texts(self) -> list[str]:
        """Return the texts of the Drawing, each in its longest form."""
        lines = [*self.corner[:1], *(note[0] for note in self.notes), *([self.notice] if self.notice else [])]
        return [self.title, *lines, *(mark.texts[0] for mark in self.marks if isinstance(mark, Text))]


@singledispatch
def draw(scene: Any) -> Drawing:
    """Return the panel of a scene, drawn by the function registered for its class; TypeError for no scene."""
    kinds = ", ".join(kind.__name__ for kind in draw.registry if kind is not object)
    raise TypeError(f"no panel draws a {type(scene).__name__}; scenes are: {kinds}")

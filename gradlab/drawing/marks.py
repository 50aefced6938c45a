"""What a panel draws: a Drawing is a list of marks with places, roles for colours, and words.

Places and sizes are CSS pixels from the top left corner of the panel. A colour is a *role* ("ink", "weights", "stale"),
which the painter turns into a colour of its theme; ``"weights/50"`` is that colour at 50 % over the paper. Nothing here
knows torch or paints: the browser paints a Drawing on a canvas (``front/painter.js``), matplotlib on paper
(``paint.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any

DASHES = ("", "dashed", "dotted", "dashdot")
SHAPES = ("circle", "ring", "square", "triangle", "down", "diamond", "cross", "plus", "left", "right", "star")


@dataclass(frozen=True, slots=True)
class Axis:
    """How places on a path are read as numbers: ``start + per_pixel * place``, or 10 to the power of that."""

    start: float
    per_pixel: float
    log: bool = False

    def value(self, place: float) -> float:
        """Return the number at a place in CSS pixels."""
        number = self.start + self.per_pixel * place
        return 10.0**number if self.log else number


@dataclass(frozen=True, slots=True)
class Readout:
    """What to say of the point of a path that is nearest to the pointer: ``"update {x}: loss {y}"``."""

    words: str
    x: Axis
    y: Axis


@dataclass(frozen=True, slots=True)
class Drag:
    """What dragging a mark, or across it, means: ``name`` is told to the kernel with the place read on two axes.

    ``"weights"`` moves the weights of a two-weight model, ``"zoom"`` chooses a range of the x axis.
    """

    name: str
    x: Axis
    y: Axis


@dataclass(frozen=True, slots=True)
class Mark:
    """What all marks have."""

    id: str
    """Names the mark within its Drawing, the same from frame to frame, so that only what changes is sent."""


@dataclass(frozen=True, slots=True)
class Path(Mark):
    """A line through ``points`` (x0, y0, x1, y1, ...); a pair of NaN lifts the pen. With ``fill`` it is closed."""

    points: Any
    stroke: str = ""
    width: float = 1.5
    dash: str = ""
    fill: str = ""
    hatch: str = ""
    words: str = ""
    readout: Readout | None = None
    drag: Drag | None = None
    press: str = ""
    """What pressing the mark tells the kernel, "" for nothing: ``"batch 38"``."""
    moves: bool = False
    """Whether the browser shows how it got from one moment to the next: new marks slide in, those gone are swept out.

    What has the same ``press``, or else the same id, is the same thing at both moments.
    """
    done: str = ""
    """What was done with it last: where this becomes another word, stripes run over a mark that ``moves``."""


@dataclass(frozen=True, slots=True)
class Band(Mark):
    """The area between two edges, ``points`` being triples (x, y of the lower edge, y of the upper edge)."""

    points: Any
    fill: str = ""
    stroke: str = ""
    """Of both edges."""
    width: float = 1.0
    hatch: str = ""
    words: str = ""
    readout: Readout | None = None


@dataclass(frozen=True, slots=True)
class Dots(Mark):
    """The same small shape at each of ``points`` (x0, y0, x1, y1, ...), ``size`` pixels across."""

    points: Any
    shape: str = "circle"
    size: float = 6.0
    fill: str = ""
    stroke: str = ""
    width: float = 1.0
    words: str = ""
    drag: Drag | None = None
    moves: bool = False
    """As of a Path."""


@dataclass(frozen=True, slots=True)
class Text(Mark):
    """One line of text; ``x`` is its left end, middle or right end by ``anchor``, ``y`` the middle of its height."""

    x: float
    y: float
    text: str
    role: str = "ink"
    size: float = 12.0
    anchor: str = "start"
    bold: bool = False
    backed: bool = False
    """On a patch of paper, where it stands on other marks."""
    angle: float = 0.0
    """Degrees, counted against the clock."""
    words: str = ""


@dataclass(frozen=True, slots=True)
class CodeText(Text):
    """A line of code, in letters of one width; only still pictures have them."""


@dataclass(frozen=True, slots=True)
class Image(Mark):
    """A grid of cells over a rectangle: ``cells`` are indices into ``palette``, roles, row by row from the top."""

    x: float
    y: float
    width: float
    height: float
    columns: int
    cells: Any
    palette: tuple[str, ...]
    words: str = ""


@dataclass(frozen=True)
class Drawing:
    """One panel at one moment: ``marks`` from the back to the front, on ``width`` x ``height`` CSS pixels."""

    title: str
    marks: Sequence[Mark]
    words: str = ""
    """The panel in a sentence or two, for who cannot see it."""
    width: int = 400
    height: int = 260

    def find(self, id: str) -> Any:
        """Return the mark of this id; KeyError when there is none."""
        for mark in self.marks:
            if mark.id == id:
                return mark
        raise KeyError(f"no mark {id!r} in {self.title!r}; there are: {', '.join(mark.id for mark in self.marks)}")

    def texts(self) -> list[str]:
        """Return what is written in the Drawing, from the back to the front."""
        return [mark.text for mark in self.marks if isinstance(mark, Text)]


def non_default_fields(mark: Mark) -> list[tuple[str, Any]]:
    """Return name and value of every field but the id that is not at its default."""
    found = []
    kind: Any = type(mark)
    for name, default in _fields(kind):
        value = getattr(mark, name)
        if value is not default and (default is MISSING or value != default):
            found.append((name, value))
    return found


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Return name and default of each field of a kind of mark."""
    return tuple((each.name, each.default) for each in fields(kind) if each.name != "id")

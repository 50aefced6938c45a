"""What every panel begins and ends with: its title, its marks from the back to the front, and its labels."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from .axes import Axes
from .labels import Placer, Spot
from .lettering import shorten, text_width
from .marks import Drawing, Mark, Path

TITLE = 14.0
"""Size of titles, in CSS pixels, where there is room; texts of a panel are 11 to 14, whatever its width."""
SMALL = 11.0
TITLE_Y = 15.0
MARGIN = 8.0


class PanelBuilder:
    """Collects the marks of one panel; what is added later lies in front."""

    def __init__(self, title: str, width: int, height: int) -> None:
        """Begin with the title."""
        self.title, self.width, self.height = title, width, height
        room = width - 2 * MARGIN
        self._size = min(TITLE, max(SMALL, TITLE * room / max(text_width(title, TITLE, True), 1.0)))
        self.marks: list[Mark] = []
        self.placer = Placer(width, height)
        said = shorten(title, room, self._size, bold=True)
        self.label("title", [Spot(said, MARGIN, TITLE_Y)], size=self._size, bold=True)

    def add(self, *marks: Mark) -> None:
        """Put marks in front of those before."""
        self.marks += marks

    def axes(self, axes: Axes) -> None:
        """Add axes, whose words then keep their places."""
        self.marks += axes.marks
        self.placer.take(axes.boxes)

    def label(self, id: str, spots: Iterable[Spot], **look: Any) -> bool:
        """Write a label at the first of its spots that is free; False where there is none, and it is left out."""
        text = self.placer.place(id, spots, **look)
        if text is not None:
            self.marks.append(text)
        return text is not None

    def corner(self, *texts: str, role: str = "ink") -> None:
        """Write the first of these texts that has room at the right of the title, the last one smaller if need be."""
        x = self.width - MARGIN
        self.label("corner", [Spot(text, x, TITLE_Y, "end") for text in texts], role=role) or self.label(
            "corner", [Spot(texts[-1], x, TITLE_Y, "end")], role=role, size=SMALL
        )

    def finish(self, words: str) -> Drawing:
        """Return the Drawing; ``words`` tell the panel in a sentence or two."""
        return Drawing(self.title, self.marks, words, self.width, self.height)


@lru_cache(maxsize=4096)
def make_box(id: str, left: float, top: float, right: float, bottom: float, **look: Any) -> Path:
    """Return a rectangle; the very same object for the same fields."""
    return Path(id, (left, top, right, top, right, bottom, left, bottom), **look)

"""What every panel begins and ends with, and pictures of words alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from .axes import Axes
from .labels import Placer, Spot, make_text, shorten, text_width, wrapped
from .marks import CodeText, Drawing, Mark, Path, Text

TITLE = 14.0
"""Size of titles, in CSS pixels, where there is room; texts of a panel are 11 to 14, whatever its width."""
SMALL = 11.0
TITLE_Y = 15.0
MARGIN = 8.0
_WORD, _WORDS_LINE = 13.0, 19.0  # size of sentences, and CSS pixels from line to line


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


def draw_message(text: str, title: str = "", width: int = 400, height: int = 260) -> Drawing:
    """Draw a sentence in the middle of an empty panel, on as many lines as it needs."""
    panel = PanelBuilder(title, width, height)
    lines = wrapped(text, width - 24, _WORD)
    top = height / 2 - _WORDS_LINE * (len(lines) - 1) / 2
    for at, line in enumerate(lines):
        panel.label(f"line {at}", [Spot(line, width / 2, top + at * _WORDS_LINE, "middle")], size=_WORD)
    return panel.finish(text)


_STRENGTH = 0.35
"""How much of each colour is left."""
_NOTE = 12.0


def fade(drawing: Drawing, words: str) -> Drawing:
    """Return the same drawing, faint, with these words at the right of its title; what stood there goes."""
    kept = [_faded(mark) for mark in drawing.marks if mark.id != "corner"]
    place = drawing.width - MARGIN, TITLE_Y
    note = make_text("out of date", *place, words, "ink", _NOTE, "end", True, True, 0.0, words)
    return Drawing(drawing.title, [*kept, note], f"{words}. {drawing.words}", drawing.width, drawing.height)


def _faded(mark: Mark) -> Mark:
    if isinstance(mark, Text):
        return mark if mark.id == "title" else replace(mark, role="grey-text")
    known = {field.name for field in fields(mark)}
    paler = {name: _paler(getattr(mark, name)) for name in ("fill", "stroke") if name in known}
    return replace(mark, **paler)


def _paler(role: str) -> str:
    """Return a role with a part of its strength: ``weights/50`` becomes ``weights/18``."""
    name, _, strength = role.partition("/")
    if not name or name == "paper":
        return role
    return f"{name}/{round((float(strength) if strength else 100.0) * _STRENGTH)}"


_SIZE, _LINE, _ADVANCE = 12.0, 17.0, 0.602  # of the letters of code, in CSS pixels; an advance is in units of the size
_GUTTER, _EDGE = 40.0, 6.0
_CHIP = 30
_BREAK = re.compile(r" |\((?!\))")  # a line of code may be broken after these, and within no ()


def draw_loop(
    source: str, lit: Collection[int], changed: Collection[int], words: Collection[str], width: int
) -> Drawing:
    """Draw the loop with its numbers, the line that ran last and those that a switch changed; ``words`` stand below."""
    marks: list[Mark] = []
    most = int((width - _GUTTER - _EDGE) / (_SIZE * _ADVANCE))
    y = _EDGE
    for number, line in enumerate(source.splitlines(), 1):
        pieces = _pieces(line, most)
        bottom = y + _LINE * len(pieces)
        if number in lit or number in changed:
            fill = "activations/40" if number in lit else "gradients/25"
            marks.append(make_box(f"line {number}", 1.0, y, width - 1.0, bottom, fill=fill))
        sign = "▶" if number in lit else "∗" if number in changed else ""
        middle = y + _LINE / 2
        marks.append(Text(f"sign {number}", 6.0, middle, sign, size=10.0))
        marks.append(CodeText(f"number {number}", _GUTTER - 8.0, middle, str(number), "grey", _SIZE, "end"))
        comment = line.lstrip().startswith("#")
        for at, piece in enumerate(pieces):
            place = y + _LINE * (at + 0.5)
            role = "grey" if comment else "ink"
            marks.append(CodeText(f"code {number} {at}", _GUTTER, place, piece, role, bold=number in lit))
        y = bottom
    frame = (1.0, 1.0, width - 1.0, 1.0, width - 1.0, y + _EDGE, 1.0, y + _EDGE, 1.0, 1.0)
    marks.append(Path("frame", frame, stroke="faint", width=1.0))
    y += 2 * _EDGE
    for count, text in enumerate(words):
        for at, said in enumerate(wrapped(text, width - _EDGE, _WORD)):
            marks.append(Text(f"words {count} {at}", 2.0, y + _WORDS_LINE / 2, said, size=_WORD))
            y += _WORDS_LINE
        y += 4.0
    return Drawing("the loop", marks, " ".join(words), width, round(y))


def draw_chip(warning: str, width: int) -> Drawing:
    """Draw the warning, as the chip above a lab."""
    text = f"⚠ {warning}"
    right = min(text_width(text, _WORD, True) + 24.0, width - 2.0)
    chip = make_box("chip", 2.0, 3.0, right, _CHIP - 3.0, stroke="stale-text", width=2.0, fill="stale/15")
    said = Text("words", 12.0, _CHIP / 2, text, size=_WORD, bold=True)
    return Drawing("warning", [chip, said], warning, width, _CHIP)


def _pieces(line: str, most: int) -> list[str]:
    """Break a line of code as the browser does: what goes on below begins two columns further in."""
    further = " " * (len(line) - len(line.lstrip()) + 2)
    pieces = []
    while len(line) > most:
        places = [found.end() for found in _BREAK.finditer(line) if len(further) < found.end() <= most]
        at = places[-1] if places else most
        pieces.append(line[:at])
        line = further + line[at:]
    return [*pieces, line]

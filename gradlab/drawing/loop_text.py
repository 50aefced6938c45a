"""The loop as text and the words of a lab, for still pictures: in a notebook the browser writes them itself."""

from __future__ import annotations

import re
from collections.abc import Collection

from .builder import make_box
from .lettering import text_width, wrapped
from .marks import CodeText, Drawing, Mark, Path, Text

_SIZE, _LINE, _ADVANCE = 12.0, 17.0, 0.602  # of the letters of code, in CSS pixels; an advance is in units of the size
_GUTTER, _EDGE = 40.0, 6.0
_WORD, _WORDS_LINE = 13.0, 19.0
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

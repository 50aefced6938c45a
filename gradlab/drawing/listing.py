"""The training loop in a still picture: numbered lines, marked if they ran last or changed, and sentences below."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .fonts import text_width, wrapped
from .plots import Sheet

_CODE_PX, _CODE_LINE_PX, _ADVANCE = 12.0, 17.0, 0.602  # font size, line height, and character width per font size
_GUTTER_PX, _EDGE_PX = 40.0, 6.0
_SENTENCE_PX, _SENTENCE_LINE_PX = 13.0, 19.0
_WARNING_PX = 30.0
_BREAK = re.compile(r" |\((?!\))")  # code may be broken after a space or "(", but not within "()"


@dataclass(frozen=True)
class Listing:
    """A training loop to paint, ``width`` CSS pixels wide. If ``source`` is empty, ``sentences`` are a warning."""

    source: str
    width: float
    lit: Collection[int] = ()  # numbers of the lines that ran last
    changed: Collection[int] = ()  # numbers of the lines that a switch or an edit changed
    sentences: Collection[str] = ()  # shown below the loop

    @cached_property
    def lines(self) -> list[tuple[int, list[str]]]:
        """The number of each line, and the pieces into which the line is broken to fit ``width``."""
        most = int((self.width - _GUTTER_PX - _EDGE_PX) / (_CODE_PX * _ADVANCE))
        return [(number, _pieces(line, most)) for number, line in enumerate(self.source.splitlines(), 1)]

    @property
    def height(self) -> float:
        """The height, in CSS pixels, of the loop and the sentences below it, or of a warning if there is no loop."""
        if not self.source:
            return _WARNING_PX
        code = _CODE_LINE_PX * sum(len(pieces) for _, pieces in self.lines)
        rows = sum(len(wrapped(text, self.width - _EDGE_PX, _SENTENCE_PX)) for text in self.sentences)
        return round(code + 3 * _EDGE_PX + _SENTENCE_LINE_PX * rows + 4 * len(self.sentences))


def paint_listing(listing: Listing, sheet: Sheet) -> None:
    """Paint the loop and the sentences below it on ``sheet``, or a warning with the sentences if there is no loop."""
    if not listing.source:
        text = f"\u26a0 {' '.join(listing.sentences)}"
        wide = min(text_width(text, _SENTENCE_PX, True) + 22.0, listing.width - 4.0)
        sheet.add_box(2.0, 3.0, wide, _WARNING_PX - 6.0, "reused/15", "reused-text", 2.0)
        sheet.write(12.0, _WARNING_PX / 2, text, size=_SENTENCE_PX, bold=True)
        return
    y = _EDGE_PX
    for number, pieces in listing.lines:
        if (lit := number in listing.lit) or number in listing.changed:
            fill = "activations/40" if lit else "gradients/25"
            sheet.add_box(1.0, y, listing.width - 2.0, _CODE_LINE_PX * len(pieces), fill)
            sheet.write(6.0, y + _CODE_LINE_PX / 2, "\u25b6" if lit else "\u2217", size=10.0)
        code: dict[str, Any] = {"size": _CODE_PX, "fontfamily": "DejaVu Sans Mono"}
        sheet.write(_GUTTER_PX - 8, y + _CODE_LINE_PX / 2, str(number), role="grey", anchor="right", **code)
        role = "grey" if pieces[0].lstrip().startswith("#") else "ink"
        for piece in pieces:
            sheet.write(_GUTTER_PX, y + _CODE_LINE_PX / 2, piece, role=role, bold=lit, **code)
            y += _CODE_LINE_PX
    sheet.add_box(1.0, 1.0, listing.width - 2.0, y + _EDGE_PX - 1.0, "", "faint", 1.0)
    y += 2 * _EDGE_PX
    for text in listing.sentences:
        for line in wrapped(text, listing.width - _EDGE_PX, _SENTENCE_PX):
            sheet.write(2.0, y + _SENTENCE_LINE_PX / 2, line, size=_SENTENCE_PX)
            y += _SENTENCE_LINE_PX
        y += 4.0


def _pieces(line: str, most: int) -> list[str]:
    """Return a line in pieces of at most ``most`` characters, broken as in the browser; later pieces are indented."""
    further = " " * (len(line) - len(line.lstrip()) + 2)
    pieces = []
    while len(line) > most:
        ends = [match.end() for match in _BREAK.finditer(line) if len(further) < match.end() <= most]
        end = ends[-1] if ends else most
        pieces.append(line[:end])
        line = further + line[end:]
    return [*pieces, line]

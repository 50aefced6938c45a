"""The still picture of a patient: the doctor's card at the left, and beside it what tells sick from cured."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...drawing import CodeText, Drawing, Mark, Text, draw_loop, text_width, wrapped
from .patient_words import is_inserted

_WIDE, _HIGH, _HIGHEST = 430, 215, 400  # CSS pixels of a panel
_SIZE, _LINE, _APART = 13.0, 19.0, 5.0
_CODE, _ADVANCE = 12.0, 0.602
_HERE, _ABOVE = "edit here", "insert above"


@dataclass(frozen=True)
class CardFinding:
    """A finding as the card tells it."""

    head: str
    words: str
    fix: str


def draw_card(source: str, line: int, findings: Sequence[CardFinding], words: Sequence[str], width: int) -> Drawing:
    """Draw the loop with the line to edit, below it what the doctor has found, the fix as code, and what was seen."""
    loop = draw_loop(source, (line,) if line else (), (), (), width)
    marks: list[Mark] = [_with_colour(mark) if mark.id == f"line {line}" else mark for mark in loop.marks]
    marks += _edit_here(loop, line, width, _ABOVE if findings and is_inserted(findings[0].fix) else _HERE)
    y = float(loop.height)
    room = width - 10.0
    said = []

    def write(id: str, text: str, *, bold: bool = False, role: str = "ink") -> None:
        nonlocal y
        for at, part in enumerate(wrapped(text, room * (0.92 if bold else 1.0), _SIZE)):
            marks.append(Text(f"{id} {at}", 2.0, y + _LINE / 2, part, size=_SIZE, bold=bold, role=role))
            y += _LINE
        said.append(text)

    for number, finding in enumerate(findings):
        write(f"head {number}", finding.head, bold=True, role="wrong-text")
        write(f"finding {number}", finding.words)
        if finding.fix:
            marks.append(Text(f"fix {number}", 2.0, y + _LINE / 2, "Fix:", size=_SIZE, bold=True))
            for at, part in enumerate(_code_lines(finding.fix, room - 34.0)):
                marks.append(CodeText(f"fix {number} {at}", 36.0, y + _LINE / 2, part, size=_CODE))
                y += _LINE
            said.append(f"Fix: {finding.fix}")
        y += _APART
    for number, text in enumerate(words):
        write(f"words {number}", text)
        y += _APART
    return Drawing("the doctor's card", marks, " ".join(said), width, round(y))


def lay_out_still(
    card: Callable[[int], Drawing], panels: Sequence[Callable[[int, int], Drawing]]
) -> tuple[list[Drawing], int, Drawing | None]:
    """Return what an instrument's still shows: one or two panels beside the card, more in rows of two with it."""
    drawn = card(_WIDE)
    if len(panels) > 2:
        high = min(drawn.height, _HIGHEST)
        return [drawn, panels[0](_WIDE, high), *(panel(_WIDE, 260) for panel in panels[1:])], 2, None
    high = min(max(drawn.height // max(len(panels), 1), _HIGH), _HIGHEST)
    return [panel(_WIDE, high) for panel in panels], 1, drawn


def titled(drawing: Drawing, title: str) -> Drawing:
    """Return a drawing under another title."""
    marks = [replace(m, text=title) if isinstance(m, Text) and m.id == "title" else m for m in drawing.marks]
    return replace(drawing, title=title, marks=marks)


def _with_colour(mark: Mark) -> Mark:
    return replace(mark, fill="wrong/25")  # type: ignore[call-arg]


def _edit_here(loop: Drawing, line: int, width: int, words: str) -> list[Mark]:
    """Return what to do, in words beside the line to edit, where its last row leaves room."""
    pieces = [m for m in loop.marks if isinstance(m, CodeText) and m.id.startswith(f"code {line} ")]
    if not pieces:
        return []
    last = pieces[-1]
    free = width - last.x - len(last.text) * last.size * _ADVANCE
    if free < text_width(words, 11.0, True) + 20.0:
        return []
    return [Text("edit here", width - 8.0, last.y, words, "wrong-text", 11.0, "end", bold=True)]


def _code_lines(text: str, wide: float) -> list[str]:
    """Break a fix where it is too wide: code stays on one line, its comment goes on below."""
    code, sign, comment = text.partition("  # ")
    if not sign or len(text) * _CODE * _ADVANCE <= wide:
        return [text]
    return [code, *textwrap.wrap(f"# {comment}", int(wide / (_CODE * _ADVANCE)))]

"""A Drawing that is out of date: everything in it faint, and a mark that says so."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from .builder import MARGIN, TITLE, TITLE_Y
from .labels import make_text, text_box
from .lettering import text_width
from .marks import Drawing, Mark, Text

_STRENGTH = 0.35
"""How much of each colour is left."""
_SIZE = 12.0


def fade(drawing: Drawing, words: str) -> Drawing:
    """Return the same drawing, faint, with these words at the right of its title; what stood there goes."""
    x = drawing.width - MARGIN
    free = x - (MARGIN + text_width(drawing.title, TITLE, bold=True) + 12)
    y = TITLE_Y if text_width(words, _SIZE, bold=True) <= free else drawing.height - _SIZE
    box = text_box(words, x, y, "end", _SIZE, bold=True)
    kept = [_faded(mark) for mark in drawing.marks if not (isinstance(mark, Text) and _covers(box, mark))]
    note = make_text("out of date", x, y, words, "ink", _SIZE, "end", True, True, 0.0, words)
    return Drawing(drawing.title, [*kept, note], f"{words}. {drawing.words}", drawing.width, drawing.height)


def _covers(box: Any, mark: Text) -> bool:
    other = text_box(mark.text, mark.x, mark.y, mark.anchor, mark.size, mark.bold, mark.angle)
    return bool(box.left < other.right and other.left < box.right and box.top < other.bottom and other.top < box.bottom)


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

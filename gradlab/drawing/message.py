"""Words in the place of a picture that could not be drawn."""

from __future__ import annotations

from .builder import PanelBuilder
from .labels import Spot
from .lettering import wrapped
from .marks import Drawing

_SIZE, _LINE = 13.0, 19.0


def draw_message(text: str, title: str = "", width: int = 400, height: int = 260) -> Drawing:
    """Draw a sentence in the middle of an empty panel, on as many lines as it needs."""
    panel = PanelBuilder(title, width, height)
    lines = wrapped(text, width - 24, _SIZE)
    top = height / 2 - _LINE * (len(lines) - 1) / 2
    for at, line in enumerate(lines):
        panel.label(f"line {at}", [Spot(line, width / 2, top + at * _LINE, "middle")], size=_SIZE)
    return panel.finish(text)

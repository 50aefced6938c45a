"""The still picture of a lab: what a saved notebook, GitHub and a page without scripts show."""

from __future__ import annotations

from typing import NamedTuple

from ..drawing import Drawing, draw_chip, draw_loop, to_png, to_svg
from ..scenes import status_line
from .controller import LabController
from .requests import PanelSize

_WIDE, _APART = 930, 10  # CSS pixels: about as wide as a lab in a notebook, so that little moves when the lab comes
_LARGE = {1: PanelSize(530, 297, 530), 2: PanelSize(530, 235, 530)}
"""Of one panel, and of two, which stand one above the other."""
_SMALL = PanelSize(300, 216, 600)


class Still(NamedTuple):
    """A lab at one moment, laid out as in a notebook: the warning above, the loop and the words beside the panels."""

    panels: list[Drawing]
    columns: int
    loop: Drawing
    chip: Drawing | None

    def png(self) -> bytes:
        """Return it as a PNG."""
        return to_png(self.panels, self.columns, beside=self.loop, above=self.chip)

    def svg(self) -> str:
        """Return it as SVG."""
        return to_svg(self.panels, self.columns, beside=self.loop, above=self.chip)


def still_of(lab: LabController) -> Still:
    """Return a lab as it is now."""
    count = len(lab.panels())
    size = _LARGE.get(count, _SMALL)
    columns = 1 if count in _LARGE else 2
    if count % columns == 0:
        size = size._replace(last=size.width)
    ran = lab.runner.statement
    lit = range(ran.line, ran.last_line + 1)
    words = [text for text in (lab.note, status_line(lab.runner)) if text]
    loop = draw_loop(lab.runner.source, lit, lab.changed, words, _WIDE - _APART - columns * size.width)
    return Still(lab.drawings(size), columns, loop, draw_chip(lab.warning, _WIDE) if lab.warning else None)

"""The still picture of a lab: what a saved notebook, GitHub and a page without scripts show."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ..drawing import Drawing, draw_chip, draw_loop, to_png, to_svg
from ..scenes import status_line
from .controller import LabController
from .requests import PanelSize

_WIDE, _APART = 930, 10  # CSS pixels: about as wide as a lab in a notebook, so that little moves when the lab comes
_SIZES = {1: PanelSize(530, 297, 530), 2: PanelSize(530, 270, _WIDE), 3: PanelSize(465, 270, 465)}
"""Of one panel to three, which with the loop fill rows of two: a last one without a neighbour spans its row."""
_SMALL = PanelSize(300, 216, 600)
"""Of more panels, in rows of two beside the loop."""


class Still(NamedTuple):
    """A lab at one moment: the warning above, the loop with its words, and the panels."""

    panels: list[Drawing]
    loop: Drawing
    chip: Drawing | None

    def png(self) -> bytes:
        """Return it as a PNG."""
        drawn, beside = self._laid()
        return to_png(drawn, beside=beside, above=self.chip)

    def svg(self) -> str:
        """Return it as SVG."""
        drawn, beside = self._laid()
        return to_svg(drawn, beside=beside, above=self.chip)

    def _laid(self) -> tuple[list[Drawing], Drawing | None]:
        """Return what fills the rows, and what stands at the left of all of them."""
        if len(self.panels) not in _SIZES:
            return self.panels, self.loop
        return [replace(self.loop, width=self.loop.width + _APART), *self.panels], None


def still_of(lab: LabController) -> Still:
    """Return a lab as it is now."""
    count = len(lab.panels())
    size = _SIZES.get(count, _SMALL)
    if size is _SMALL and count % 2 == 0:
        size = size._replace(last=size.width)
    ran = lab.runner.statement
    lit = range(ran.line, ran.last_line + 1)
    words = [text for text in (lab.note, status_line(lab.runner)) if text]
    taken = size.width if count in _SIZES else 2 * size.width
    loop = draw_loop(lab.runner.source, lit, lab.changed, words, _WIDE - _APART - taken)
    return Still(lab.drawings(size), loop, draw_chip(lab.warning, _WIDE) if lab.warning else None)

"""mosaic_figure: many verdicts at one glance, a tile each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ...drawing import colour, own_look

FRESH, INK, OPTIMIZER, STALE = map(colour, ("fresh", "ink", "optimizer", "stale"))

_ACROSS = 11  # tiles in a row: the longest list fills two
_GREEN = "#A8DCCB"  # OPTIMIZER, half way to white


class Look(NamedTuple):
    """How one kind of verdict is drawn: the sign and the hatch are there for those who do not see the colour."""

    sign: str
    colour: str
    hatch: str
    ink: str
    edge: str
    """A colour that stands out on white."""


VERDICT_STYLES = {
    "holds": Look("\u2713", OPTIMIZER, "", "#FFFFFF", OPTIMIZER),
    "holds inside its condition": Look("\u2713", _GREEN, "", INK, OPTIMIZER),
    "held until": Look("\u25f7", "#D9D9D9", "", INK, "#767676"),
    "depends": Look("\u25d0", FRESH, "", INK, "#B8AC00"),
    "does not hold": Look("\u2717", STALE, "///", "#FFFFFF", STALE),
}


def mosaic_figure(
    rows: Mapping[str, Sequence[tuple[str, str, str]]], counts: Mapping[str, int], title: str = ""
) -> bytes:
    """Draw a tile for each (code, kind, until), row by row under the row's name, and a key with the counts; a PNG."""
    lines: list[tuple[str, Sequence[tuple[str, str, str]]]] = []
    for name, tiles in rows.items():
        for first in range(0, max(len(tiles), 1), _ACROSS):
            lines.append((name if first == 0 else "", tiles[first : first + _ACROSS]))
    with own_look():
        figure = Figure(figsize=(12.8, 1.9 + 1.15 * len(lines)), dpi=120)
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
        axes.set_axis_off()
        y: float = 0.75
        axes.text(0, 0.25, title, fontsize=19, va="center", color=INK)
        for name, tiles in lines:
            if name:
                axes.text(0, y + 0.16, name, fontsize=15, va="center", color=INK)
                y += 0.34
            for x, (code, kind, until) in enumerate(tiles):
                _tile(axes, x, y, kind, code, until)
            y += 0.92
        y += 0.12
        for at, kind in enumerate(VERDICT_STYLES):
            left = at * _ACROSS / len(VERDICT_STYLES)
            _tile(axes, left, y, kind, str(counts.get(kind, 0)))
            words = kind.replace("inside ", "inside\n")
            axes.text(left + 1.03, y + 0.42, words, fontsize=13.5, va="center", color=INK)
        axes.set(xlim=(-0.05, _ACROSS + 0.05), ylim=(y + 0.9, 0))
        out = BytesIO()
        canvas.print_png(out)
    return out.getvalue()


def _tile(axes: Axes, x: float, y: float, kind: str, code: str, until: str = "") -> None:
    """Draw one tile, its upper left corner at (x, y)."""
    look = VERDICT_STYLES[kind]
    box = Rectangle((x, y), 0.95, 0.84, facecolor=look.colour, edgecolor=INK, linewidth=1.2)
    axes.add_patch(box)
    if look.hatch:
        # The hatch stays in the lower right corner, away from the letters.
        corner = Rectangle((x + 0.52, y + 0.46), 0.43, 0.38, facecolor="none", edgecolor=look.ink, linewidth=0)
        corner.set_hatch(look.hatch)
        axes.add_patch(corner)
    for at, down, words, size in ((0.08, 0.24, code, 20), (0.08, 0.62, look.sign, 22), (0.42, 0.62, until, 15)):
        axes.text(x + at, y + down, words, fontsize=size, color=look.ink, va="center", fontweight="bold")

"""A small key: what fresh, stale and the sum look like, drawn once into the background."""

from __future__ import annotations

from typing import Any

from matplotlib.patches import Rectangle

from .canvas import Canvas
from .palette import FRESH, GRADIENTS, INK, STALE, STALE_HATCH

BATCH_STYLES: dict[str, dict[str, Any]] = {
    "fresh": {"facecolor": FRESH, "edgecolor": INK, "linewidth": 1.0},
    "stale": {"facecolor": STALE, "edgecolor": INK, "linewidth": 1.0, "hatch": STALE_HATCH, "linestyle": "dashed"},
    "older": {"facecolor": "none", "edgecolor": "#767676", "linewidth": 1.2, "linestyle": "dashed"},
    "sum": {"facecolor": "white", "edgecolor": GRADIENTS, "linewidth": 2.2},
}
"""How a contribution to ``.grad`` is drawn wherever it appears. Stale: a step has already used it."""


def key(panel: Canvas[Any], entries: dict[str, str], left: float, top: float, across: float = 0) -> None:
    """Draw ``{"fresh": "fresh", ...}`` as swatches with words, ``left`` and ``top`` in CSS pixels.

    They stand below each other, or beside each other ``across`` CSS pixels apart.
    """
    for at, (look, word) in enumerate(entries.items()):
        x = left + at * across
        y = top + (0 if across else at * 22)
        swatch = Rectangle(
            (x / panel.width, panel.y_from_top(y + 6)),
            18 / panel.width,
            12 / panel.height,
            transform=panel.figure.transFigure,
        )
        swatch.set(**BATCH_STYLES[look])
        panel.figure.add_artist(swatch)
        panel.add_text((x + 23) / panel.width, panel.y_from_top(y), word, animate=False)

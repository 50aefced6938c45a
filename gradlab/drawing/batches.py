"""How batches in ``.grad`` look wherever they are drawn, and a small key of it."""

from __future__ import annotations

from typing import Any

from .builder import PanelBuilder, make_box
from .labels import Spot

BATCH_STYLES: dict[str, dict[str, Any]] = {
    "fresh": {"fill": "fresh", "stroke": "ink", "width": 1.0},
    "stale": {"fill": "stale", "stroke": "ink", "width": 1.0, "hatch": "//", "dash": "dashed"},
    "older": {"stroke": "grey", "width": 1.2, "dash": "dashed"},
    "sum": {"fill": "paper", "stroke": "gradients", "width": 2.2},
}
"""How a contribution to ``.grad`` is drawn. Stale: an optimizer step has already used it."""


def add_key(panel: PanelBuilder, entries: dict[str, str], left: float, top: float, across: float = 0.0) -> None:
    """Add ``{"fresh": "fresh", ...}`` as swatches with words below each other, or ``across`` pixels apart."""
    for at, (look, word) in enumerate(entries.items()):
        x, y = left + at * across, top + (0.0 if across else at * 20.0)
        if panel.label(f"key {look} word", [Spot(word, x + 23, y)]):
            panel.add(make_box(f"key {look}", x, y - 6, x + 18, y + 6, **BATCH_STYLES[look]))

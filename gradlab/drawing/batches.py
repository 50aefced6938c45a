"""How batches in ``.grad`` look wherever they are drawn, and a small key of it."""

from __future__ import annotations

from collections.abc import Sequence
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
_IN_FULL = {"stale": "stale (already used)"}


def add_key(panel: PanelBuilder, looks: Sequence[str], left: float, top: float, across: float = 0.0) -> None:
    """Add a swatch with its words for each look, below each other or ``across`` pixels apart."""
    for at, look in enumerate(looks):
        x, y = left + at * across, top + (0.0 if across else at * 20.0)
        # side by side there is room to say more, if the panel is wide enough
        words = [_IN_FULL[look], look] if across and look in _IN_FULL else [look]
        if panel.label(f"key {look} word", [Spot(word, x + 23, y) for word in words]):
            panel.add(make_box(f"key {look}", x, y - 6, x + 18, y + 6, **BATCH_STYLES[look]))

"""How batches in ``.grad`` look wherever they are drawn, and a small key of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..gradients import Span
from .builder import PanelBuilder, make_box
from .labels import Spot

BATCH_STYLES: dict[str, dict[str, Any]] = {
    "fresh": {"fill": "fresh", "stroke": "ink", "width": 1.0},
    "stale": {"fill": "stale", "stroke": "ink", "width": 1.0, "hatch": "//", "dash": "dashed"},
    "other": {"fill": "paper", "stroke": "grey", "width": 1.2, "dash": "dashed"},
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


def batches_text(spans: Sequence[Span]) -> str:
    """Say which batches are inside: ``holds batches 38\u201341``."""
    if not spans:
        return "holds no batch"
    parts = [span_text(span, short=True) for span in spans]
    if len(parts) > 2:
        parts = [parts[0], "\u2026", parts[-1]]
    one = len(spans) == 1 and spans[0][0] == spans[0][1]
    return ("holds batch " if one else "holds batches ") + ", ".join(parts)


def span_text(span: Span, *, short: bool = False) -> str:
    """Write consecutive batches: ``batches 38\u201341``, or in ``short`` their numbers alone."""
    first, last = span
    if first == last:
        return f"{first:,}" if short else f"batch {first:,}"
    return f"{first:,}\u2013{last:,}" if short else f"batches {first:,}\u2013{last:,}"

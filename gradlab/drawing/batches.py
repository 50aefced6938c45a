"""How batches in ``.grad`` look wherever they are drawn, and a small key of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..gradients import Span
from .builder import PanelBuilder, make_box
from .labels import Box, Spot
from .lettering import text_width

BATCH_STYLES: dict[str, dict[str, Any]] = {
    "fresh": {"fill": "fresh", "stroke": "ink", "width": 1.0},
    "stale": {"fill": "stale", "stroke": "ink", "width": 1.0, "hatch": "//", "dash": "dashed"},
    "outdated": {"fill": "faint", "stroke": "ink", "width": 1.0, "hatch": "..", "dash": "dotted"},
    "other": {"fill": "paper", "stroke": "grey", "width": 1.2, "dash": "dashed"},
    "sum": {"fill": "faint", "stroke": "ink", "width": 2.2},
}
"""How a contribution to ``.grad`` is drawn. Stale: an optimizer step has already used it. Outdated: no step has used it
yet, and the weights have moved since its forward."""
_IN_FULL = {"stale": "stale (already used)", "sum": "their sum, .grad"}
_SWATCH, _GAP = 23.0, 16.0  # CSS pixels from a swatch to the end of it, and between two entries in a row


def add_key(panel: PanelBuilder, looks: Sequence[str], left: float, top: float, right: float | None = None) -> None:
    """Add a swatch with its words for each look, below each other; in a row if it may reach to ``right``."""
    words = list(looks)
    if right is not None:
        in_full = [_IN_FULL.get(look, look) for look in looks]
        if left + sum(_SWATCH + text_width(word, 12.0) + _GAP for word in in_full) - _GAP <= right:
            words = in_full
    x, y = left, top
    for look, word in zip(looks, words, strict=True):
        if panel.label(f"key {look} word", [Spot(word, x + _SWATCH, y)]):
            box = make_box(f"key {look}", x, y - 6, x + 18, y + 6, **BATCH_STYLES[look])
            panel.add(box)
            panel.placer.take([Box(x, y - 6, x + 18, y + 6)])
        if right is None:
            y += 20.0
        else:
            x += _SWATCH + text_width(word, 12.0) + _GAP


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

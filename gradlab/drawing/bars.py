"""How long each layer's ``.grad`` is, and how much of it an optimizer step has used before."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..formatting import short
from ..gradients import Span
from ..scenes import Bar, Bars
from .axes import Side, make_axes
from .batches import BATCH_STYLES, add_key
from .builder import PanelBuilder
from .labels import Spot
from .lettering import shorten
from .limits import COARSE, LARGEST_DRAWN, from_zero
from .marks import Drawing, Path

SEGMENTS = 16
"""Up to so many batches are shown as segments of their own."""
_TOLD = 4  # layers in the words of the panel


def draw_bars(scene: Bars, width: int, height: int) -> Drawing:
    """Draw a bar for each layer, split into batches; the last row stands for all layers that find no row."""
    panel = PanelBuilder("gradient in .grad", width, height)
    left = min(max(0.27 * width, 76.0), 170.0)
    bars = merge_small(scene.bars, max(2, round((height - 98) / 20)))
    top = from_zero(max((bar.norm for bar in bars if math.isfinite(bar.norm)), default=0.0), COARSE)
    norm = Side(0.0, top, words="norm of .grad")
    axes = make_axes((width, height), left, 56.0, width - 56.0, height - 38.0, norm, Side(0, 1, ticks="none"))
    panel.corner(batches_text(scene.holds), "")
    panel.axes(axes)
    add_key(panel, ("fresh", "stale"), left, 41, 74)
    held = batch_numbers(scene.holds)
    row = (axes.bottom - axes.top) / max(len(bars), 3)
    for at, bar in enumerate(bars):
        y = axes.top + (at + 0.5) * row
        words = bar_words(bar)
        end = axes.right if math.isnan(bar.norm) else axes.x.at(min(bar.norm, LARGEST_DRAWN))
        names = held if len(held) == bar.fresh + bar.stale else []
        half = min(0.36 * row, 18.0)
        for part, (begin, stop, stale) in enumerate(fresh_and_stale(bar)):
            a, b = (axes.left + share * (end - axes.left) for share in (begin, stop))
            if b <= a:
                continue
            batch = f"batch {names[part]}" if part < len(names) and len(names) <= SEGMENTS else ""
            panel.add(
                Path(
                    f"bar {at}.{part}",
                    (a, y - half, b, y - half, b, y + half, a, y + half),
                    words=f"{words}. Here: {batch}" if batch else words,
                    press=batch,
                    **BATCH_STYLES["stale" if stale else "fresh"],
                )
            )
        name = shorten(bar.name, left - 14, keep_end=True)
        panel.label(f"name {at}", [Spot(name, left - 7, y, "end")])
        said = short(bar.norm) if bar.fresh + bar.stale else "empty"
        panel.label(f"value {at}", [Spot(said, end + 5, y)])
    return panel.finish(_words(scene))


def fresh_and_stale(bar: Bar) -> list[tuple[float, float, bool]]:
    """Cut a bar into (start, end, stale) shares of its length, stale first, one a batch when there are few."""
    count = bar.fresh + bar.stale
    if count <= 0:
        return [(0.0, 1.0, False)] if bar.norm else []
    if count <= SEGMENTS:
        return [(at / count, (at + 1) / count, at < bar.stale) for at in range(count)]
    share = bar.stale / count
    return [part for part in ((0.0, share, True), (share, 1.0, False)) if part[1] > part[0]]


def batch_numbers(holds: Sequence[Span]) -> list[int]:
    """Return the numbers of the batches, the oldest first; none where there are more than can be shown."""
    if sum(last - first + 1 for first, last in holds) > SEGMENTS:
        return []
    return [number for first, last in holds for number in range(first, last + 1)]


def merge_small(bars: Sequence[Bar], rows: int) -> list[Bar]:
    """Keep as many bars as there are rows; the last one then stands for all the rest together."""
    if len(bars) <= rows:
        return list(bars)
    rest = bars[rows - 1 :]
    norm = math.hypot(*(min(bar.norm, LARGEST_DRAWN) for bar in rest))
    together = Bar(f"{len(rest)} more", norm, max(b.fresh for b in rest), max(b.stale for b in rest))
    return [*bars[: rows - 1], together]


def batches_text(spans: Sequence[Span]) -> str:
    """Say which batches are inside: ``holds batches 38\u201341``."""
    if not spans:
        return "holds no batch"
    parts = [str(first) if first == last else f"{first}\u2013{last}" for first, last in spans]
    if len(parts) > 2:
        parts = [parts[0], "\u2026", parts[-1]]
    one = len(spans) == 1 and spans[0][0] == spans[0][1]
    return ("holds batch " if one else "holds batches ") + ", ".join(parts)


def bar_words(bar: Bar) -> str:
    """Say what one layer holds: ``layer 2: |grad| 0.31, 3 fresh batches, 1 already applied``."""
    if not bar.fresh + bar.stale:
        return f"{bar.name}: .grad is empty"
    fresh = f", {bar.fresh:,} fresh batch{'' if bar.fresh == 1 else 'es'}" if bar.fresh else ""
    return f"{bar.name}: |grad| {short(bar.norm)}{fresh}" + (f", {bar.stale:,} already applied" if bar.stale else "")


def _words(scene: Bars) -> str:
    if not scene.bars:
        return "The model has no parameters with a gradient."
    told = [bar_words(bar) for bar in scene.bars[:_TOLD]]
    more = len(scene.bars) - _TOLD
    return (
        f".grad {batches_text(scene.holds)}. " + "; ".join(told) + (f"; and {more} layers more." if more > 0 else ".")
    )

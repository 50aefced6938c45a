"""BarsPanel: how long each parameter's ``.grad`` is, and how much of it a step has used before."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.patches import PathPatch

from ..formatting import short
from ..gradients import Span
from ..scenes import Bar, Bars
from .canvas import Canvas, set_label
from .key import BATCH_STYLES, key
from .limits import LARGEST, Range
from .outline import NOTHING, outline
from .palette import FRESH, STALE
from .style import own_look

SEGMENTS = 16
"""Up to so many batches are shown as segments of their own."""


class BarsPanel(Canvas[Bars]):
    """A bar for each parameter: its length the norm, split into fresh and stale batches by their number."""

    title = "gradient in .grad"
    colours = (FRESH, STALE)

    def build(self) -> None:
        """Make the two kinds of segment and a row of labels."""
        self.axes = self.add_axes(left=114, right=58, top=58)
        self.axes.set_xlabel("norm of .grad", labelpad=2)
        self.axes.tick_params(axis="y", length=0)
        self._rows = max(2, round((self.height - 98) / 20))
        self._names: list[str] = []
        self._range = Range(floor=0.0, slack=12)
        self._fresh, self._stale = (PathPatch(NOTHING, **BATCH_STYLES[kind]) for kind in ("fresh", "stale"))
        for bars in (self._fresh, self._stale):
            self.axes.add_patch(bars)
            self.animate(bars)
        self._values = self.labels(self.axes, self._rows)
        key(self, {"fresh": "fresh", "stale": "stale (already used)"}, 114, 44, across=74)

    def draw_scene(self, scene: Bars) -> None:
        """Draw as many parameters as there are rows; the last row sums up the rest."""
        bars = merge_small(scene.bars, self._rows)
        names = [name if len(name) <= 13 else "\u2026" + name[-12:] for name in (bar.name for bar in bars)]
        if names != self._names:
            self._names = names
            with own_look():
                self.axes.set_yticks(range(len(names)), names, parse_math=False)
            self.set_limits(self.axes, y=(max(len(names), 3) - 0.4, -0.6))
            self.refresh()
        right = self._range.fit([bar.norm for bar in bars])[1]
        self.set_limits(self.axes, x=(0.0, right))
        segments: dict[bool, list[np.ndarray]] = {True: [], False: []}
        for row, (bar, label) in enumerate(zip(bars, self._values, strict=False)):
            length = min(bar.norm, right) if not math.isnan(bar.norm) else right
            for start, end, stale in fresh_and_stale(bar):
                if length > 0:
                    left, to = start * length, end * length
                    top, bottom = row - 0.36, row + 0.36
                    segments[stale].append(np.array([(left, top), (to, top), (to, bottom), (left, bottom)]))
            set_label(label, length + right * 0.02, row, short(bar.norm) if bar.fresh + bar.stale else "empty")
        for label in self._values[len(bars) :]:
            label.set_text("")
        self._fresh.set_path(outline(segments[False]))
        self._stale.set_path(outline(segments[True]))
        self.corner_text.set_text(batches_text(scene.holds))


def fresh_and_stale(bar: Bar) -> list[tuple[float, float, bool]]:
    """Cut a bar into (start, end, stale) shares of its length, stale first, one a batch when there are few."""
    count = bar.fresh + bar.stale
    if count <= 0:
        return [(0.0, 1.0, False)] if bar.norm else []
    if count <= SEGMENTS:
        return [(at / count, (at + 1) / count, at < bar.stale) for at in range(count)]
    share = bar.stale / count
    return [part for part in ((0.0, share, True), (share, 1.0, False)) if part[1] > part[0]]


def merge_small(bars: Sequence[Bar], rows: int) -> list[Bar]:
    """Keep as many bars as there are rows; the last one then stands for all the rest together."""
    if len(bars) <= rows:
        return list(bars)
    rest = bars[rows - 1 :]
    norm = math.hypot(*(min(bar.norm, LARGEST) for bar in rest))
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

"""LossPanel: the loss over updates, with a mark wherever a switch was flipped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import Polygon

from ..formatting import short
from ..scenes import Curve
from .canvas import Canvas, set_label
from .limits import Range, Scale, numbers
from .palette import GREY, INK, LOSS

NEWEST = 6
"""So many switches are labelled; older ones keep their dashed line."""
ROWS = 4


class LossPanel(Canvas[Curve]):
    """Mean loss as a line, lowest to highest as a band, switches as dashed marks with a label."""

    title = "loss"

    def build(self) -> None:
        """Make the line, the band, the marks and their labels."""
        self.axes = self.add_axes(left=58)
        self.axes.set_xlabel("updates", labelpad=2)
        self._across, self._scale = Range(floor=0.0), Scale()
        self._band = Polygon(np.zeros((1, 2)), facecolor="#CFCFCF", edgecolor="none")
        self._marks = LineCollection([], colors=GREY, linestyles="dashed", linewidths=1.2)
        self.axes.add_patch(self._band)
        self.axes.add_collection(self._marks, autolim=False)
        (self._line,) = self.axes.plot([], [], color=LOSS, linewidth=1.8)
        (self._now,) = self.axes.plot([], [], color=LOSS, marker="o", markersize=5, linestyle="none")
        self.animate(self._band, self._marks, self._line, self._now)
        self._names = self.labels(self.axes, NEWEST, size=10, backed=True)
        frame = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": INK, "linestyle": "dashed"}
        (self._broken,) = self.labels(self.axes, 1, size=12, weight="bold", ha="center", bbox=frame)
        for text in (*self._names, self._broken):
            text.set_transform(self.axes.transAxes)

    def draw_scene(self, scene: Curve) -> None:
        """Draw the curve up to where it breaks."""
        x, mean, low, high = (numbers(part) for part in (scene.updates, scene.mean, scene.low, scene.high))
        kept = np.isfinite(x) & np.isfinite(mean)
        if scene.broken is not None:
            kept &= x <= scene.broken
        low, high = (np.where(np.isfinite(edge), edge, mean) for edge in (low, high))
        room = 1.3 if scene.switches else 1.0
        span = self._scale.fit(np.concatenate([mean[kept], low[kept], high[kept]]), room)
        ends = [0.0, *x[kept][-1:], *(float(at) for at, _ in scene.switches[-1:]), *([scene.broken or 0.0])]
        if self._across.limits and max(ends) < self._across.limits[1] / 50:
            self._across = Range(floor=0.0)  # the run was reset
        across = self._across.fit(ends if max(ends) > 0 else [])
        if self._scale.log:
            mean, low, high = (np.maximum(part, span[0]) for part in (mean, low, high))
        self.set_limits(self.axes, across)
        self.set_y_scale(self.axes, span, self._scale.log)
        self._line.set_data(x, np.where(kept, mean, np.nan))
        shown = np.flatnonzero(kept)
        self._now.set_data(x[shown[-1:]], mean[shown[-1:]])
        if len(shown) > 1:
            edge = np.column_stack([np.r_[x[shown], x[shown][::-1]], np.r_[low[shown], high[shown][::-1]]])
        else:
            edge = np.zeros((1, 2))
        self._band.set_xy(edge)
        self.corner_text.set_text(f"now {short(float(mean[shown[-1]]))}" if len(shown) and scene.broken is None else "")
        self._place_marks(scene, across, span)
        said = f"inf or NaN from update {scene.broken}" if scene.broken is not None else ""
        set_label(self._broken, 0.5, 0.12, said)

    def _place_marks(self, scene: Curve, across: tuple[float, float], span: tuple[float, float]) -> None:
        self._marks.set_segments([[(at, span[0]), (at, span[1])] for at, _ in scene.switches[-40:]])
        pixels = self.axes.bbox.width
        taken: list[list[tuple[float, float]]] = [[] for _ in range(ROWS)]
        for label, switch in zip(self._names, _padded(scene.switches[-NEWEST:][::-1]), strict=True):
            label.set_text("")
            if switch is None:
                continue
            at = (switch[0] - across[0]) / (across[1] - across[0])
            label.set_text(switch[1])
            wide = label.wide() / pixels + 0.01
            left = at + 0.01 if at + wide < 1.0 else at - wide
            row = next((r for r in range(ROWS) if all(left + wide < a or b < left for a, b in taken[r])), None)
            if row is None or left < 0:
                label.set_text("")
                continue
            taken[row].append((left, left + wide))
            label.set(x=left + 0.005, y=1 - (row + 0.5) * 18 * self.figure.dpi / 100 / self.axes.bbox.height)


def _padded(switches: Sequence[tuple[int, str]]) -> list[tuple[int, str] | None]:
    return [*switches, *[None] * (NEWEST - len(switches))]

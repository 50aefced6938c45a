"""ArrowsPanel: what each batch added to ``.grad``, head to tail from where the weights are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.patches import PathPatch
from matplotlib.transforms import IdentityTransform

from ..formatting import short
from ..scenes import Arrows
from .canvas import set_label
from .key import BATCH_STYLES, key
from .limits import LARGEST_DRAWN, Numbers, numbers
from .outline import NOTHING, outline
from .palette import FRESH, GRADIENTS, GREY, STALE, WEIGHTS
from .plane import Plane

NAMED = 8
"""Up to so many arrows carry the number of their batch."""
STEPS = (7.0, 5.0, 4.0, 3.0, 2.0, 1.5, 1.0)
REACH = 0.6
"""Together the arrows reach at most across this share of the picture."""


class ArrowsPanel(Plane[Arrows]):
    """Arrows of fresh and stale batches that add up to the bold outline: what ``.grad`` holds. Uphill is forward."""

    title = "gradient in .grad"
    colours = (WEIGHTS, GRADIENTS, FRESH, STALE)
    margin = 88.0

    def build(self) -> None:
        """Make the four kinds of arrow."""
        super().build()
        self._kinds: dict[str, PathPatch] = {}
        for kind in ("sum", "older", "stale", "fresh"):
            arrows = PathPatch(NOTHING, transform=IdentityTransform(), **BATCH_STYLES[kind])
            self.axes.add_patch(arrows)
            self._kinds[kind] = arrows
            self.animate(arrows)
        (self._weights,) = self.axes.plot([], [], color=WEIGHTS, marker="o", markersize=10, mec="white", mew=1.5, ls="")
        self.animate(self._weights)
        self._numbers = self.labels(self.axes, NAMED, ha="center")
        (self._older,) = self.labels(self.axes, 1, ha="center")
        self._older.set(color=GREY, text="")
        for label in (*self._numbers, self._older):
            label.set(transform=IdentityTransform())
        left = self.width - self.margin + 8
        key(self, {"fresh": "fresh", "stale": "stale", "sum": "sum"}, left, 48)
        self._zoom = self.add_text((left - 2) / self.width, self.y_from_top(126), "", va="top", linespacing=1.25)
        self._factor = 0.0

    def draw_scene(self, scene: Arrows) -> None:
        """Lay the arrows head to tail, at a scale at which they fit the view."""
        steps = numbers([edge for a in scene.arrows for edge in (a.dx, a.dy)]).reshape(-1, 2)
        whole = numbers([*scene.earlier, *scene.total]).reshape(2, 2)
        sound = bool(np.isfinite(steps).all() and np.isfinite(whole).all())
        steps, whole = np.nan_to_num(steps, posinf=0, neginf=0), np.nan_to_num(whole, posinf=0, neginf=0)
        with np.errstate(over="ignore"):
            reach = np.clip(np.cumsum([whole[0], *steps], axis=0), -LARGEST_DRAWN, LARGEST_DRAWN)
        factor = self._fit(scene, np.vstack([reach, whole[1:]]))
        here = np.clip(np.nan_to_num(numbers(scene.weights)), -LARGEST_DRAWN, LARGEST_DRAWN)
        tips = [tuple(here + end * factor) for end in [*reach, whole[1]]]
        self.surface(scene.contours, [*tips, scene.weights])
        start = self.axes.transData.transform(np.clip(here, -1e9, 1e9))
        per_unit = self.axes.transData.transform([(1, 1)])[0] - self.axes.transData.transform([(0, 0)])[0]
        ends, total = start + reach * factor * per_unit, start + whole[1] * factor * per_unit
        thick = self.figure.dpi / 100
        drawn: dict[str, list[Numbers]] = {kind: [] for kind in self._kinds}
        drawn["older"] = arrow_outline(start, ends[0], 4 * thick)
        for one, tail, head in zip(scene.arrows, ends[:-1], ends[1:], strict=True):
            drawn["stale" if one.stale else "fresh"] += arrow_outline(tail, head, 6 * thick)
        drawn["sum"] = arrow_outline(start, total, 14 * thick)
        for kind, polygons in drawn.items():
            self._kinds[kind].set_path(outline(polygons))
        self._weights.set_data([scene.weights[0]], [scene.weights[1]])
        self._name(scene, ends, bool(drawn["older"]))
        if not sound:
            self._zoom.set_text("inf or NaN\nin .grad")
        else:
            self._zoom.set_text("arrows\ntrue length" if factor == 1 else f"arrows\n\u00d7 {short(factor)}")

    def _name(self, scene: Arrows, ends: Numbers, older: bool) -> None:
        thick = self.figure.dpi / 100
        long = np.hypot(*(ends[1:] - ends[:-1]).T) > 10 * thick
        named = len(scene.arrows) <= NAMED
        taken: list[tuple[float, float]] = []
        for at, label in enumerate(self._numbers):
            label.set_text("")
            if named and at < len(scene.arrows) and long[at]:
                middle, side = (ends[at] + ends[at + 1]) / 2, _side(ends[at + 1] - ends[at]) * 22 * thick
                x, y = middle + side
                if not self.axes.bbox.contains(x, y - 8 * thick):  # not onto the ticks
                    x, y = middle - side
                if any(math.hypot(x - u, y - v) < 15 * thick for u, v in taken):
                    continue
                taken.append((x, y))
                set_label(label, x, y, str(scene.arrows[at].batch))
        self._older.set_text("")
        start = self.axes.transData.transform(np.clip(np.nan_to_num(scene.weights), -1e9, 1e9))
        if older and math.dist(start, ends[0]) > 16 * thick:
            x, y = (start + ends[0]) / 2 + _side(ends[0] - start) * 16 * thick
            set_label(self._older, x, y, "older batches")

    def _fit(self, scene: Arrows, reach: Numbers) -> float:
        """Choose a round factor; keep the last one while it will do, so that arrows do not breathe."""
        wide = np.array([np.ptp(numbers(edge)) if len(edge) else 1.0 for edge in (scene.contours.x, scene.contours.y)])
        wide = np.where(np.isfinite(wide) & (wide > 0), wide, 1.0)
        longest = float(np.abs(reach / wide).max(initial=0.0))
        if longest == 0:
            return self._factor or 1.0
        best = min(REACH / longest, LARGEST_DRAWN)
        if not 0.15 * best < self._factor <= best:
            power = 10.0 ** math.floor(math.log10(best))
            self._factor = next((power * step for step in STEPS if power * step <= best), power)
            if 1 <= best < 8:
                self._factor = 1.0
        return self._factor


def arrow_outline(tail: Numbers, head: Numbers, width: float) -> list[Numbers]:
    """Return the outline of a filled arrow between two points in pixels, or nothing when it has no length."""
    along: Any = np.asarray(head) - np.asarray(tail)
    length = float(np.hypot(*along))
    if not 0.5 < length < 1e9:
        return []
    along = along / length
    aside = np.array([-along[1], along[0]])
    tip = min(length * 0.7, 1.7 * width)
    neck, half, wing = head - along * tip, width / 2, min(width, tip * 0.6 + width / 4)
    corners = [tail + aside * half, neck + aside * half, neck + aside * wing, head]
    return [np.array([*corners, neck - aside * wing, neck - aside * half, tail - aside * half])]


def _side(along: Numbers) -> Numbers:
    length = float(np.hypot(*along)) or 1.0
    return np.array([along[1], -along[0]]) / length

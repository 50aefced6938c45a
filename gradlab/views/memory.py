"""MemoryPanel: bytes by category over the last updates, statement by statement, the peak and its cause named."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import PathPatch
from matplotlib.ticker import FixedLocator, FuncFormatter

from ..formatting import bytes_text
from ..scenes import Memory, peak_location, share_of_gpu
from .canvas import Canvas, set_label
from .label import Label
from .limits import Numbers, Range
from .outline import NOTHING, outline
from .palette import ACTIVATIONS, FAINT, GRADIENTS, INK, OPTIMIZER, WEIGHTS
from .spread import StatementLayout, bounds, decimate, keep_recent
from .stack import CATEGORY_STYLES, byte_ticks, darker, spread_labels, stacked, style_of
from .statements import Statements

SIGHT = {"capacity": 2.0, "allocated": 1.5, "reserved": 1.5}
"""A level that lies higher than so many times the peak is said in words instead of drawn."""
_MOST_UPDATES = 3
_NUMBER, _VALUE = 24, 16  # CSS pixels above the peak for the number of its update, and for its bytes
_RIGHT, _TOP, _BOTTOM, _ROW = 92, 48, 64, 18  # CSS pixels

Edges = dict[str, tuple[Numbers, Numbers]]


class MemoryPanel(Canvas[Memory]):
    """Stacked areas that rise and fall as the loop runs, an update beside the one before it."""

    title = "memory"
    colours = (WEIGHTS, GRADIENTS, OPTIMIZER, ACTIVATIONS)

    def build(self) -> None:
        """Make an area for each category, the marks and lines, and a stock of labels."""
        self.axes = self.add_axes(left=66, right=_RIGHT, top=_TOP, bottom=_BOTTOM)
        self.axes.tick_params(axis="x", length=0, pad=2)
        self.axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))
        self._range = Range(floor=0.0)
        self._statements = Statements(self)
        self._areas = {name: PathPatch(NOTHING, **style_of(name)) for name in CATEGORY_STYLES}
        for area in self._areas.values():
            self.axes.add_patch(area)
        self.animate(*self._areas.values())
        self._dividers = LineCollection([], colors=FAINT, linewidths=1.5)
        self.axes.add_collection(self._dividers, autolim=False)
        styles = ("dashdot", "dashed", "dotted")
        self._lines = [self.axes.plot([], [], color=INK, linestyle=style, linewidth=1.4)[0] for style in styles]
        (self._peaks,) = self.axes.plot([], [], color=INK, marker="v", markersize=7, ls="")
        self.animate(self._dividers, *self._lines, self._peaks)
        self._words = dict(zip(CATEGORY_STYLES, self.labels(self.axes, len(CATEGORY_STYLES), backed=True), strict=True))
        self._names = self.labels(self.axes, len(SIGHT), va="bottom", ha="left", size=9, backed=True)
        self._numbers = self.labels(self.axes, _MOST_UPDATES, va="top", ha="center", size=9)
        self._values = self.labels(self.axes, _MOST_UPDATES, va="bottom", ha="center", size=9)
        self._cause = self.add_text(0.025, self.y_from_top(36), "")
        self._room = self.add_text(0.025, self.y_from_top(36 + _ROW), "")
        self.corner_text.set_fontsize(9)

    def draw_scene(self, scene: Memory) -> None:
        """Stack the categories, mark the peak of each update, and say what the newest one comes from."""
        scene = keep_recent(scene)
        count = max((len(values) for values in scene.categories.values()), default=0)
        ends = bounds(scene.starts, len(scene.statements), count)
        first = sorted({0} | {at for at, _ in scene.updates if 0 < at < len(scene.statements)})[-_MOST_UPDATES:]
        edges = stacked(scene.categories, count)
        total = edges["other"][1]
        where = self._statements.lay_out(scene, ends, first, _moved(edges, ends))
        highest = float(total.max()) if count else 0.0
        levels = self._levels(scene, highest)
        tall = self.axes.bbox.height / (self.figure.dpi / 100)
        head = _NUMBER + (_VALUE if len(first) > 1 else 0)
        wanted = [highest * tall / max(tall - head, 1), *(value * 1.15 for value in levels.values())]
        top = self._range.fit([0.0, *wanted])[1]
        self._scale(top)
        self._draw(edges, where)
        self._mark(total, where, dict(scene.updates), first, top)
        self._label(edges, where, top)
        self._draw_levels(scene, levels)
        self._tell(scene, total, where.points[-1], levels.keys())

    def _scale(self, top: float) -> None:
        if self.axes.get_ylim()[1] != top:
            # bytes are read in powers of 1024, so ticks lie on round numbers of KiB or MiB
            self.axes.yaxis.set_major_locator(FixedLocator(byte_ticks(top)))
        self.set_limits(self.axes, y=(0, top))
        self._down = self.axes.bbox.height / (self.figure.dpi / 100) / top  # CSS pixels a byte

    def _draw(self, edges: Edges, where: StatementLayout) -> None:
        parts = []
        for begin, end in where.points:
            total = edges["other"][1][begin:end]
            kept, left, right = decimate(where.left[begin:end], where.right[begin:end], total)
            parts.append((kept + begin, np.column_stack([left, right]).ravel()))
        for name, (low, high) in edges.items():
            shown = [
                np.column_stack([np.r_[x, x[::-1]], np.r_[np.repeat(low[at], 2), np.repeat(high[at], 2)[::-1]]])
                for at, x in parts
                if len(at) and (high[at] > low[at]).any()
            ]
            self._areas[name].set_path(outline(shown))
        ends = [(a[1] + b[0]) / 2 for a, b in pairwise(where.updates)]
        self._dividers.set_segments([[(x, 0), (x, self.axes.get_ylim()[1])] for x in ends])

    def _mark(
        self, total: Numbers, where: StatementLayout, numbers: dict[int, int], first: list[int], top: float
    ) -> None:
        """Put its number over each update, and a mark on its peak; with its bytes when there are several."""
        for label in (*self._numbers, *self._values):
            label.set_text("")
        marks = []
        for at, ((left, right), (begin, end)) in enumerate(zip(where.updates, where.points, strict=True)):
            if first[at] in numbers:
                number = f"{numbers[first[at]]:,}"
                set_label(self._numbers[at], (left + right) / 2, top, f"update {number}")
                if self._css(self._numbers[at]) > right - left:
                    self._numbers[at].set_text(number)
            if end > begin and total[begin:end].max() > 0:
                high = begin + int(total[begin:end].argmax())
                x = float(where.left[high] + where.right[high]) / 2
                marks.append((x, total[high] + 5 / self._down))
                if len(where.updates) > 1:
                    set_label(self._values[at], x, total[high] + 9 / self._down, bytes_text(total[high]))
                    half = self._css(self._values[at]) / 2
                    self._values[at].set_x(min(max(x, left + half), max(right - half, left + half)))
        self._peaks.set_data([x for x, _ in marks], [y for _, y in marks])

    def _label(self, edges: Edges, where: StatementLayout, top: float) -> None:
        """Write each category on its area where it is gone at the end, else beside its right end."""
        right = where.updates[-1][1]
        beside: dict[str, float] = {}
        begin, end = where.points[-1]
        for name, (low, high) in edges.items():
            label = self._words[name]
            label.set_text("")
            thick = (high - low)[begin:end]
            if not len(thick) or thick.max() * self._down < 1.0:
                continue
            at = begin + int(thick.argmax())
            set_label(label, 0.0, low[at] * 0.6 + high[at] * 0.4, name, ha="center", color=darker(name), size=9)
            label.backed = True
            wide = float((where.right - where.left)[begin:end][thick > thick.max() / 2].sum())
            if thick[-1] * self._down < 1 and thick.max() * self._down >= 16 and wide > self._css(label) * 0.6:
                half = self._css(label) / 2
                middle = float(where.left[at] + where.right[at]) / 2
                label.set_x(min(max(middle, half), right - half))
            else:
                beside[name] = float(low[end - 1] + high[end - 1]) / 2 * self._down
        for name, height in spread_labels(beside, 16, top * self._down).items():
            set_label(self._words[name], right + 5, height / self._down, name, ha="left", color=darker(name), size=10)
            self._words[name].backed = False

    def _levels(self, scene: Memory, peak: float) -> dict[str, float]:
        """Return the levels that are within sight of the peak."""
        values = (scene.capacity[1] if scene.capacity else None, scene.allocated, scene.reserved)
        known = {name: float(v) for name, v in zip(SIGHT, values, strict=True) if v is not None}
        return {name: value for name, value in known.items() if 0 < value <= SIGHT[name] * peak}

    def _draw_levels(self, scene: Memory, levels: dict[str, float]) -> None:
        wide = self.axes.get_xlim()[1]
        heights = spread_labels({name: value * self._down for name, value in levels.items()}, 14, 1e9)
        for line, label, name in zip(self._lines, self._names, SIGHT, strict=True):
            value = levels.get(name)
            word = scene.capacity[0] if name == "capacity" and scene.capacity else name
            line.set_data([0, wide] if value else [], [value, value] if value else [])
            set_label(label, 4, heights.get(name, 0.0) / self._down, f"{word} {bytes_text(value)}" if value else "")

    def _tell(self, scene: Memory, total: Numbers, newest: tuple[int, int], drawn: Collection[str]) -> None:
        """Say the newest peak and its cause, how it stands against the card, and what else is to be known."""
        begin, end = newest
        peak = float(total[begin:end].max()) if end > begin else 0.0
        self._cause.set_text("")
        if peak > 0:
            statement, module = _at(scene, begin + int(total[begin:end].argmax()), len(total))
            for cut in (module, *(f"\u2026{module[at:]}" for at in range(2, len(module), 2)), ""):
                self._cause.set_text(f"\u25bc peak {bytes_text(peak)} {peak_location(statement, cut)}")
                if self._css(self._cause) < self.width * 0.96:
                    break
        far = ""
        if scene.capacity and peak > 0 and ("capacity" not in drawn or peak > scene.capacity[1]):
            far = share_of_gpu(*scene.capacity, peak)
        self._room.set_text(far)
        tall = self.height - _BOTTOM - _TOP - (_ROW if far else 0)
        now = self.axes.get_position()
        if abs(now.height - tall / self.height) > 1e-6:
            self.axes.set_position((now.x0, now.y0, now.width, tall / self.height))
            self.refresh()
        reserved = scene.reserved is not None and "reserved" not in drawn
        notes = [f"reserved {bytes_text(scene.reserved or 0)}" if reserved else "", scene.note]
        self.corner_text.set_text(" \u00b7 ".join(note for note in notes if note))

    def _css(self, label: Label) -> float:
        """Return how wide a label is in CSS pixels."""
        return label.wide() / (self.figure.dpi / 100)


def _moved(edges: Edges, ends: list[int]) -> list[bool]:
    """Say of each statement whether any byte moved while it ran."""
    heights = np.diff([edges[name][1] for name in edges], axis=1)
    changes = np.r_[0, 0, np.cumsum((heights != 0).any(axis=0))] if ends[-1] else np.zeros(1)
    return [b > a and bool(a == 0 or changes[b] > changes[a]) for a, b in pairwise(ends)]


def _at(scene: Memory, point: int, points: int) -> tuple[str, str]:
    """Return the statement and the module of a point."""
    ends = bounds(scene.starts, len(scene.statements), points)
    statement = min(max(int(np.searchsorted(ends, point, side="right")) - 1, 0), len(scene.statements) - 1)
    return scene.statements[statement], scene.modules[point] if point < len(scene.modules) else ""

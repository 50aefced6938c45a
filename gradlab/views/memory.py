"""MemoryPanel: bytes by category after each statement of one update, the peak marked."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.patches import Polygon
from matplotlib.ticker import FixedLocator, FuncFormatter

from gradlab.scene import Memory
from gradlab.views.canvas import Canvas, say
from gradlab.views.limits import Numbers, Range, numbers
from gradlab.views.style import ACTIVATIONS, GRADIENTS, GREY, INK, OPTIMIZER, WEIGHTS, bytes_text, own_look, tint

LOOKS = {
    "weights": (WEIGHTS, None),
    "gradients": (GRADIENTS, "//"),
    "optimizer": (OPTIMIZER, ".."),
    "activations": (ACTIVATIONS, "\\\\"),
    "inputs": (GREY, "--"),
    "other": (GREY, None),
}
"""Colour and hatch of each category, from the bottom of the stack to the top; unknown ones look like "other"."""
UNITS = [1024.0**power for power in range(6)]


class MemoryPanel(Canvas[Memory]):
    """Stacked steps, one a statement, that rise and fall as the loop runs; the highest is named."""

    title = "memory"
    colours = (WEIGHTS, GRADIENTS, OPTIMIZER, ACTIVATIONS)

    def build(self) -> None:
        """Make an area for each category, the dashed lines of the allocator, and the mark at the peak."""
        self.axes = self.box(left=66, right=92, top=36, bottom=64)
        self.axes.tick_params(axis="x", length=0, pad=2)
        self.axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))
        self._statements: list[str] = []
        self._range = Range(floor=0.0)
        self._areas = {}
        for name, (colour, hatch) in LOOKS.items():
            area = Polygon(np.zeros((1, 2)), facecolor=tint(colour, 0.5), edgecolor=colour, hatch=hatch, linewidth=1.4)
            self.axes.add_patch(area)
            self._areas[name] = area
        self.moving(*self._areas.values())
        self._dashed = [
            self.axes.plot([], [], color=INK, linestyle=style, linewidth=1.4)[0] for style in ("dashed", "dotted")
        ]
        (self._peak,) = self.axes.plot([], [], color=INK, marker="v", markersize=8, ls="")
        self.moving(*self._dashed, self._peak)
        self._words = dict(zip(LOOKS, self.labels(self.axes, len(LOOKS), backed=True), strict=True))
        self._lines = self.labels(self.axes, 2, va="bottom", ha="left", size=9, backed=True)

    def place(self, scene: Memory) -> None:
        """Stack the categories and find the peak of their sum."""
        count = len(scene.statements)
        stacks = self._stack(scene, count)
        total = stacks[-1][2]
        dashed = [value for value in (scene.allocated, scene.reserved) if value is not None]
        top = self._range.fit([*total, *map(float, dashed)], room=1.08)[1]
        if list(scene.statements) != self._statements:
            self._name_statements(list(scene.statements))
        if self.axes.get_ylim()[1] != top:
            # bytes are read in powers of 1024, so ticks lie on round numbers of KiB or MiB
            unit = max((unit for unit in UNITS if unit <= top / 1.5), default=1.0)
            step = next(
                (s * unit for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if top / (s * unit) <= 5.5), top / 4
            )
            self.axes.yaxis.set_major_locator(FixedLocator(np.arange(0, top * 1.001, step).tolist()))
        self.limit(self.axes, (0, max(count, 1)), (0, top))
        for name, low, high in stacks:
            self._areas[name].set_xy(_steps(low, high))
            self._areas[name].set_visible(bool(count and (high > low).any()))
        self._label(stacks, top, count)
        for line, label, word, value in zip(
            self._dashed, self._lines, ("allocated", "reserved"), (scene.allocated, scene.reserved), strict=True
        ):
            line.set_data([0, max(count, 1)] if value is not None else [], [value, value] if value is not None else [])
            say(label, 0.05, value or 0, f"{word} {bytes_text(value)}" if value is not None else "")
        self._peak.set_data([], [])
        self.aside.set_text("")
        if count and total.max() > 0:
            at = int(total.argmax())
            self._peak.set_data([at + 0.5], [total[at] + top * 0.03])
            self.aside.set_text(f"\u25bc peak {bytes_text(total[at])} at {scene.statements[at]}")

    def _stack(self, scene: Memory, count: int) -> list[tuple[str, Numbers, Numbers]]:
        """Return (category, lower edge, upper edge) after each statement, from the bottom up."""
        heights = {name: np.zeros(count) for name in LOOKS}
        for name, values in scene.categories.items():
            got = np.nan_to_num(numbers(values), posinf=0.0, neginf=0.0)[:count]
            heights[name if name in heights else "other"][: len(got)] += np.clip(got, 0, 1e290)
        edges = np.cumsum([np.zeros(count), *heights.values()], axis=0)
        return [(name, edges[at], edges[at + 1]) for at, name in enumerate(heights)]

    def _name_statements(self, statements: list[str]) -> None:
        self._statements = statements
        wide = self.axes.bbox.width / (self.figure.dpi / 100) / max(1, len(statements))
        every = max(1, math.ceil(13 / wide))
        fits = max(map(len, statements), default=0) * 7.6 < wide
        middles = [at + 0.5 for at in range(len(statements))]
        with own_look():
            self.axes.set_xticks(middles[::every], [_cut(word) for word in statements[::every]], parse_math=False)
        look = {"rotation": 0, "ha": "center"} if fits else {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        for label in self.axes.get_xticklabels():
            label.set(**look)
        self.refresh()

    def _label(self, stacks: list[tuple[str, Numbers, Numbers]], top: float, count: int) -> None:
        """Write each category on its area where it is thick enough, else beside its right end."""
        pixels = self.axes.bbox.height / (self.figure.dpi / 100) / top
        wide = self.axes.bbox.width / (self.figure.dpi / 100) / max(1, count)
        beside: list[tuple[float, str]] = []
        for name, low, high in stacks:
            label = self._words[name]
            label.set_text("")
            if not count or not (high > low).any():
                continue
            at = int((high - low).argmax())
            if high[-1] > low[-1] or (high[at] - low[at]) * pixels < 16:
                beside.append((float(low[-1] + high[-1]) / 2 * pixels, name))
                continue
            # gone by the last statement: written where it was thickest
            half = min(count / 2, len(name) * 4.0 / wide)
            label.set(ha="center", color=_dark(LOOKS[name][0]))
            label.set_position((min(max(at + 0.5, half), count - half), (low[at] + high[at]) / 2))
            label.set_text(name)
        floor = -1e9
        for height, name in sorted(beside, key=lambda pair: pair[0]):
            height = max(height, floor + 15)
            floor = height
            colour = LOOKS[name][0]
            say(self._words[name], count * 1.02, height / pixels, name, color=_dark(colour), ha="left")


def _dark(colour: str) -> tuple[float, float, float]:
    red, green, blue = tint(colour, 1)
    return red * 0.7, green * 0.7, blue * 0.7


def _cut(word: str) -> str:
    return word if len(word) <= 11 else word[:10] + "\u2026"


def _steps(low: Numbers, high: Numbers) -> Numbers:
    """Outline the area between two step lines."""
    if not len(low):
        return np.zeros((1, 2))
    x = np.repeat(np.arange(len(low) + 1), 2)[1:-1]
    return np.column_stack([np.r_[x, x[::-1]], np.r_[np.repeat(low, 2), np.repeat(high, 2)[::-1]]])

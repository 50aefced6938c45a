"""GpuFitPanel: peaks of memory by category, side by side, against the lines of graphics cards."""

from __future__ import annotations

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import PathPatch
from matplotlib.ticker import FixedLocator, FuncFormatter

from ..formatting import bytes_text
from ..scenes import Fit, share_of_gpu, which_fit
from .canvas import Canvas, set_label
from .label import Label
from .limits import Numbers, Range
from .outline import NOTHING, outline
from .palette import ACTIVATIONS, GRADIENTS, INK, OPTIMIZER, WEIGHTS
from .stack import CATEGORY_STYLES, byte_ticks, darker, spread_labels, stacked, style_of

MOST_BARS = 4
SIGHT = 4.0
"""A card that holds more than so many times every bar is said in words instead of drawn."""
_MOST_CARDS = 8
_CARDS = 62.0  # CSS pixels at the left of the axes for the names of the cards
_HEAD = 18.0  # and above the highest bar for what it adds up to
_SMALL = 0.001  # of a bar: what is less has no label


class GpuFitPanel(Canvas[Fit]):
    """Stacked bars on a linear axis, so that what is twice as high is twice as many bytes.

    A logarithmic one would show a card of 16 GB beside a peak of 6,500 GB at its ease, and every part of a bar at a
    wrong length. Here such a card lies close to the ground, which is what the picture has to say.
    """

    title = "peak memory"
    colours = (WEIGHTS, GRADIENTS, OPTIMIZER, ACTIVATIONS)

    def build(self) -> None:
        """Make an area for each category, the lines of the cards, and a stock of labels."""
        self.axes = self.add_axes(left=66, right=150, top=50, bottom=26)
        self.axes.set_xticks([])
        self.axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))
        self._wide = self.axes.bbox.width / (self.figure.dpi / 100)
        self.axes.set_xlim(0, self._wide)
        self._range = Range(floor=0.0)
        self._areas = {name: PathPatch(NOTHING, **style_of(name)) for name in CATEGORY_STYLES}
        for area in self._areas.values():
            self.axes.add_patch(area)
        self._lines = LineCollection([], colors=INK, linewidths=1.3, linestyles="dashdot")
        self._leaders = LineCollection([], colors=INK, linewidths=0.8)
        for lines in (self._lines, self._leaders):
            self.axes.add_collection(lines, autolim=False)
        self.animate(*self._areas.values(), self._lines, self._leaders)
        self._words = dict(zip(CATEGORY_STYLES, self.labels(self.axes, len(CATEGORY_STYLES), size=9), strict=True))
        self._cards = self.labels(self.axes, _MOST_CARDS, size=9)
        self._sums = self.labels(self.axes, MOST_BARS, ha="center", va="bottom", backed=True)
        self._names = self.labels(self.axes, MOST_BARS, ha="center", va="top")
        self._told = self.add_text(0.025, self.y_from_top(38), "")
        self.corner_text.set_fontsize(9)

    def draw_scene(self, scene: Fit) -> None:
        """Stack the bars, draw the cards that are in sight, and say what fits."""
        bars = list(scene.bars)[-MOST_BARS:]
        edges = stacked(
            {name: [sizes.get(name, 0) for _, sizes in bars] for name in dict.fromkeys(n for _, b in bars for n in b)},
            len(bars),
        )
        total = edges["other"][1]
        highest = float(total.max()) if len(bars) else 0.0
        cards = sorted(scene.cards, key=lambda card: card[1])
        seen = [card for card in cards if 0 < card[1] <= SIGHT * highest][:_MOST_CARDS]
        tall = self.axes.bbox.height / (self.figure.dpi / 100)
        top = self._range.fit([0.0, highest * tall / (tall - _HEAD), *(holds * 1.08 for _, holds in seen)])[1]
        if self.axes.get_ylim()[1] != top:
            self.axes.yaxis.set_major_locator(FixedLocator(byte_ticks(top)))
        self.set_limits(self.axes, y=(0, top))
        self._down = tall / top
        self._draw(edges, bars, total)
        self._draw_cards(seen, top)
        self._tell(bars, cards, len(seen))
        self.corner_text.set_text(scene.title)

    def _draw(
        self, edges: dict[str, tuple[Numbers, Numbers]], bars: list[tuple[str, dict[str, int]]], total: Numbers
    ) -> None:
        room = (self._wide - _CARDS) / max(len(bars), 1)
        places = [(_CARDS + (at + 0.1) * room, _CARDS + (at + 0.9) * room) for at in range(len(bars))]
        for name, (low, high) in edges.items():
            boxes = [
                np.array([(a, low[at]), (b, low[at]), (b, high[at]), (a, high[at])])
                for at, (a, b) in enumerate(places)
                if high[at] > low[at]
            ]
            self._areas[name].set_path(outline(boxes))
        axis_unit = bytes_text(byte_ticks(self.axes.get_ylim()[1])[-1]).split()[-1]
        for at in range(MOST_BARS):
            if at >= len(bars):
                self._sums[at].set_text("")
                self._names[at].set_text("")
                continue
            x = sum(places[at]) / 2
            words = bytes_text(total[at])
            set_label(self._sums[at], x, total[at] + 3 / self._down, words, size=(10, 9, 8, 8)[len(bars) - 1])
            amount, unit = words.split()
            if self._css(self._sums[at]) > room and unit == axis_unit:
                self._sums[at].set_text(amount)
            set_label(self._names[at], x, -6 / self._down, name := bars[at][0], size=10 if len(bars) < 3 else 9)
            while name and self._css(self._names[at]) > room:
                name = name[:-1]
                self._names[at].set_text(f"{name}\u2026")
        heights = {
            name: float(low[-1] + high[-1]) / 2 * self._down
            for name, (low, high) in edges.items()
            if len(bars) and high[-1] - low[-1] > _SMALL * total[-1]
        }
        placed = spread_labels(heights, 15, self.axes.get_ylim()[1] * self._down)
        for name, label in self._words.items():
            size = float(edges[name][1][-1] - edges[name][0][-1]) if name in placed else 0.0
            text = f"{name} {bytes_text(size)}" if name in placed else ""
            set_label(label, self._wide + 2, placed.get(name, 0.0) / self._down, text, color=darker(name))

    def _draw_cards(self, seen: list[tuple[str, int]], top: float) -> None:
        placed = spread_labels(
            {str(at): holds * self._down for at, (_, holds) in enumerate(seen)}, 13, top * self._down
        )
        lines, leaders = [], []
        for at, label in enumerate(self._cards):
            if at >= len(seen):
                label.set_text("")
                continue
            name, holds = seen[at]
            height = placed[str(at)] / self._down
            set_label(label, 2, height, name if len(name) <= 8 else name[:7] + "\u2026")
            lines.append([(_CARDS, holds), (self._wide, holds)])
            leaders.append([(self._css(label) + 3, height), (_CARDS, holds)])
        self._lines.set_segments(lines)
        self._leaders.set_segments(leaders)

    def _tell(self, bars: list[tuple[str, dict[str, int]]], cards: list[tuple[str, int]], seen: int) -> None:
        words = which_fit(bars[-1][1], cards) if bars else "nothing is forecast yet"
        if bars and len(cards) == 1 and not seen:
            words = share_of_gpu(*cards[0], sum(bars[-1][1].values()))
        self._told.set_text(words)

    def _css(self, label: Label) -> float:
        return label.wide() / (self.figure.dpi / 100)

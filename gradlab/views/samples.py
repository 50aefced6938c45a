"""SamplesPanel: held-out digits with the model's answer; wrong ones crossed and framed."""

from __future__ import annotations

import numpy as np
from matplotlib.collections import LineCollection

from ..scenes import Samples
from .canvas import Canvas, set_label
from .palette import INK, WRONG

MOST = 24


class SamplesPanel(Canvas[Samples]):
    """A grid of digits, the answer under each: ``7`` when right, ``1, is 7`` crossed out when wrong."""

    title = "held-out digits"
    colours = (WRONG,)

    def build(self) -> None:
        """Make one image for all digits and a label for each."""
        self.axes = self.add_axes(left=8, right=8, bottom=6)
        self.axes.set_axis_off()
        self._image = self.axes.imshow(
            np.zeros((1, 1)), cmap="gray_r", vmin=0, vmax=1.25, aspect="auto", interpolation="nearest"
        )
        self._crosses = LineCollection([], colors=WRONG, linewidths=2.4)
        self.axes.add_collection(self._crosses, autolim=False)
        self.animate(self._image, self._crosses)
        self._answers = self.labels(self.axes, MOST, size=10, ha="center")

    def draw_scene(self, scene: Samples) -> None:
        """Lay the digits out in rows that fill the panel."""
        count = min(len(scene.images), len(scene.predicted), len(scene.actual), MOST)
        columns, rows = shape(count, self.width / self.height)
        tall, gap = 12.0, 2.0  # a cell in digit pixels: 8 of digit, the rest for the answer below
        self.set_limits(self.axes, (0, columns * (8 + gap)), (rows * tall, 0))
        sheet = np.zeros((int(rows * tall), int(columns * (8 + gap))))
        crosses: list[list[tuple[float, float]]] = []
        for at in range(count):
            row, column = divmod(at, columns)
            left, top = column * (8 + gap) + 1, row * tall
            image = np.nan_to_num(np.array(scene.images[at], dtype=float))
            sheet[int(top) : int(top) + 8, int(left) : int(left) + 8] = np.clip(image, 0, 1)
            said, truth = scene.predicted[at], scene.actual[at]
            right = said == truth
            word = f"{said}" if right else f"{said}, is {truth}"
            set_label(self._answers[at], left + 4, top + 9.9, word, color=INK if right else WRONG)
            self._answers[at].set_fontweight("normal" if right else "bold")
            if not right:
                x0, x1, y0, y1 = left, left + 8, top + 0.1, top + 8
                crosses += [
                    [(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)],
                    [(x0, y0), (x1, y1)],
                    [(x0, y1), (x1, y0)],
                ]
        for label in self._answers[count:]:
            label.set_text("")
        self._image.set_data(sheet if count else np.zeros((1, 1)))
        self._image.set_extent((0, columns * (8 + gap), rows * tall, 0))
        self._crosses.set_segments(crosses)
        self.corner_text.set_text(f"{scene.accuracy:.0%} right" if np.isfinite(scene.accuracy) else "")


def shape(count: int, aspect: float) -> tuple[int, int]:
    """Return (columns, rows) for so many cells in a panel of this aspect."""
    columns = max(1, min(count, round((count * aspect * 1.2) ** 0.5)))
    return columns, max(1, -(-count // columns))

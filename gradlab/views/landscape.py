"""LandscapePanel: the loss over two weights, and the way that the weights went."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..formatting import short
from ..scenes import Landscape
from .limits import numbers
from .palette import GREY, WEIGHTS
from .plane import Plane


class LandscapePanel(Plane[Landscape]):
    """Contours with the path of the weights; a ring where it began, a dot where it is."""

    title = "path of the weights"
    colours = (WEIGHTS,)

    def build(self) -> None:
        """Make the path and its two ends."""
        super().build()
        (self._path,) = self.axes.plot([], [], color=WEIGHTS, linewidth=1.8, marker=".", markersize=5)
        (self._start,) = self.axes.plot([], [], color=WEIGHTS, marker="o", markersize=8, mfc="white", mew=1.8, ls="")
        (self._now,) = self.axes.plot([], [], color=WEIGHTS, marker="o", markersize=10, mec="white", mew=1.5, ls="")
        self.animate(self._path, self._start, self._now)
        self._start_word, self._now_word = self.labels(
            self.axes, 2, color=WEIGHTS, weight="bold", va="bottom", backed=True
        )

    def draw_scene(self, scene: Landscape) -> None:
        """Draw the path, oldest first."""
        self.surface(scene.contours, scene.path)
        path = numbers([edge for point in scene.path for edge in point]).reshape(-1, 2)
        self._path.set_data(path[:, 0], path[:, 1])
        self._path.set_marker("." if len(path) <= 60 else "")
        self._start.set_data(path[:1, 0], path[:1, 1])
        self._now.set_data(path[-1:, 0], path[-1:, 1])
        for label, word, at in ((self._start_word, "start", path[:1]), (self._now_word, "now", path[-1:])):
            label.set_text("")
            if len(at) and np.isfinite(at).all() and (word == "now" or len(path) > 1):
                spot = self.axes.transAxes.inverted().transform(self.axes.transData.transform(at[0]))
                if not ((spot >= 0) & (spot <= 1)).all():
                    continue
                side = 1 if spot[0] < 0.75 else -1
                label.set(text=word, transform=self.axes.transAxes, ha="left" if side > 0 else "right")
                label.set_position((spot[0] + side * 0.03, spot[1] + 0.02))

    def level_words(self, lines: Any) -> list[Any]:
        """Write the loss on every other contour."""
        return list(lines.axes.clabel(lines, lines.levels[1::3], fontsize=9, colors=GREY, fmt=short, inline=True))

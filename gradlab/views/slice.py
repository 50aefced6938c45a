"""SlicePanel: the loss along the line that the step takes."""

from __future__ import annotations

import numpy as np

from ..formatting import short
from ..scenes import Slice
from .canvas import Canvas, set_label
from .limits import AxisScale, Range, numbers
from .palette import GRADIENTS, GREY, LOSS, WEIGHTS


class SlicePanel(Canvas[Slice]):
    """Loss of the current batch at ``weights - t * .grad``; marks where the weights are and where SGD would land."""

    title = "loss along \u2212.grad"
    colours = (WEIGHTS, GRADIENTS)

    def build(self) -> None:
        """Make the line and its two marks."""
        self.axes = self.add_axes(left=58)
        self.axes.set_xlabel("t  in  weights \u2212 t \u00b7 .grad", labelpad=2)
        self._across, self._scale = Range(), AxisScale(enter=1e3, leave=1e2)
        (self._line,) = self.axes.plot([], [], color=LOSS)
        (self._step,) = self.axes.plot([], [], color=GREY, linestyle="dashed", linewidth=1.2)
        (self._here,) = self.axes.plot([], [], color=WEIGHTS, marker="o", markersize=9, mec="white", ls="")
        (self._there,) = self.axes.plot([], [], color=GRADIENTS, marker="D", markersize=9, mec=LOSS, mew=1, ls="")
        self.animate(self._line, self._step, self._here, self._there)
        self._words = self.labels(self.axes, 2, weight="bold", va="bottom", backed=True)

    def draw_scene(self, scene: Slice) -> None:
        """Draw the line and read the loss at 0 and at lr off it."""
        t, loss = numbers(scene.t), numbers(scene.loss)
        kept = np.isfinite(t) & np.isfinite(loss)
        span = self._scale.fit(loss[kept], room=1.15)
        across = self._across.fit([*t[kept], *numbers([0.0, scene.lr])] if kept.any() else [])
        if self._scale.log:
            loss = np.where(loss > span[0], loss, span[0])
        self.set_limits(self.axes, across)
        self.set_y_scale(self.axes, span, self._scale.log)
        self._line.set_data(t, np.where(kept, loss, np.nan))
        self._step.set_data([scene.lr, scene.lr], span)
        order = np.argsort(t[kept])
        for mark, label, at, word in (
            (self._here, self._words[0], 0.0, "now"),
            (self._there, self._words[1], scene.lr, f"lr {short(scene.lr)}:"),
        ):
            found = kept.any() and t[kept].min() <= at <= t[kept].max()
            value = float(np.interp(at, t[kept][order], loss[kept][order])) if found else float("nan")
            mark.set_data([at], [value])
            label.set_text("")
            if not found:
                continue
            spot = self.axes.transAxes.inverted().transform(self.axes.transData.transform((at, value)))
            right = spot[0] > 0.65
            set_label(
                label, spot[0] - 0.03 if right else spot[0] + 0.03, min(spot[1] + 0.04, 0.9), f"{word} {short(value)}"
            )
            label.set(transform=self.axes.transAxes, ha="right" if right else "left")
        self._step.set_visible(bool(kept.any() and across[0] <= scene.lr <= across[1]))

"""ScalerPanel: the loss scale over updates, the skipped steps, and what would underflow without it."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter

from ..scenes import ScalerHistory
from .canvas import Canvas
from .limits import Range, numbers
from .palette import GRADIENTS, INK, SCALE, WRONG


class ScalerPanel(Canvas[ScalerHistory]):
    """Loss scale as steps on a log2 axis, crosses where a step was skipped; underflow as a strip below."""

    title = "loss scale"
    colours = (SCALE, GRADIENTS, WRONG)

    def build(self) -> None:
        """Make the two strips, which share their x axis."""
        strip = max(44.0, self.height * 0.17)
        self.axes = self.add_axes(left=58, bottom=40 + strip + 26)
        self.low = self.add_axes(left=58, top=self.height - 40 - strip)
        self.axes.tick_params(axis="x", labelbottom=False)
        self.low.set_xlabel("updates", labelpad=2)
        self.low.set_ylim(0, 1)
        self.low.set_yticks([0, 1], ["0%", "100%"])
        at = self.low.get_position().y1 + 11 / self.height
        self.add_text(58 / self.width, at, "would underflow without scaling", animate=False)
        self._across, self._heights = Range(floor=0.0), Range(slack=8)
        (self._steps,) = self.axes.plot([], [], color=SCALE, linewidth=2.4, drawstyle="steps-post")
        (self._skipped,) = self.axes.plot([], [], color=WRONG, marker="x", markersize=8, mew=2.2, ls="")
        (self._share,) = self.low.plot([], [], color=GRADIENTS, linewidth=2, linestyle=(0, (4, 1)))
        self.animate(self._steps, self._skipped, self._share)

    def draw_scene(self, scene: ScalerHistory) -> None:
        """Draw both strips up to the newest update."""
        x, scale, share = numbers(scene.updates), numbers(scene.scale), numbers(scene.underflow)
        kept = np.isfinite(x) & np.isfinite(scale) & (scale > 0)
        power = np.full(len(scale), np.nan)
        power[kept] = np.log2(scale[kept])
        skipped = numbers(scene.skipped)
        ends = [0.0, *x[np.isfinite(x)][-1:], *skipped[-1:]]
        if self._across.limits and max(ends) < self._across.limits[1] / 50:
            self._across = Range(floor=0.0)
        across = self._across.fit(ends if max(ends) > 0 else [])
        low, high = self._heights.fit(
            [*power[kept].tolist(), *([power[kept].min() - 2] if kept.any() else [])], room=1.2
        )
        low, high = np.floor(low), np.ceil(high)
        if tuple(self.axes.get_ylim()) != (low, high):
            step = max(1, round((high - low) / 4))
            self.axes.yaxis.set_major_locator(FixedLocator(np.arange(low, high + 1, step).tolist()))
            self.axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _power(int(value))))
        self.set_limits(self.axes, across, (low, high))
        self.set_limits(self.low, across)
        self._steps.set_data(x, power)
        under = np.interp(skipped, x[kept], power[kept]) if kept.any() else np.full(len(skipped), np.nan)
        self._skipped.set_data(skipped, under)
        self._share.set_data(x[: len(share)], np.clip(share, 0, 1)[: len(x)])
        count = len(scene.skipped)
        self.corner_text.set_text(f"\u00d7 {count} step{'' if count == 1 else 's'} skipped" if count else "")
        self.corner_text.set_color(WRONG if count else INK)


RAISED = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def _power(exponent: int) -> str:
    return "2" + str(exponent).translate(RAISED)

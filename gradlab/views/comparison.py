"""comparison_figure: the loss of several recipes on one pair of axes."""

from __future__ import annotations

import numpy as np

from ..formatting import short
from ..scenes import Curve
from .canvas import Canvas
from .limits import AxisScale, Range, numbers
from .palette import ACTIVATIONS, GRADIENTS, LOSS, OPTIMIZER, SCALE, STALE, WEIGHTS
from .style import own_look

# Here a colour names a recipe, so every curve has its own dashes too, and its name at its end.
LINES = tuple(
    zip(
        (LOSS, WEIGHTS, STALE, OPTIMIZER, SCALE, GRADIENTS, ACTIVATIONS),
        (
            "solid",
            (0, (5, 1.5)),
            (0, (1.5, 1)),
            (0, (6, 1.5, 1, 1.5)),
            (0, (9, 2)),
            (0, (3, 1, 1, 1, 1, 1)),
            (0, (2, 2)),
        ),
        strict=True,
    )
)


TALLEST = 3.0  # how far a diverging curve is followed, in units of the highest loss of those that do not diverge


class _Comparison(Canvas[dict[str, Curve]]):
    colours = tuple(colour for colour, _ in LINES[1:])

    def build(self) -> None:
        self.axes = self.add_axes(right=180, left=60, top=42)
        self.axes.set_xlabel("updates", labelpad=2)

    def draw_scene(self, scene: dict[str, Curve]) -> None:
        scale, across = AxisScale(), Range(floor=0.0)
        cut = {name: _finite(curve) for name, curve in scene.items()}
        # A run that diverges leaves the picture at the top; it must not press the others flat.
        tame = [y for name, (_, y) in cut.items() if scene[name].broken is None and len(y)]
        most = TALLEST * max((float(y.max()) for y in tame), default=np.inf)
        every = np.concatenate([y[y <= most] for _, y in cut.values()] or [np.zeros(0)])
        span = scale.fit(every)
        last = max((float(x[-1]) for x, _ in cut.values() if len(x)), default=0.0)
        wide = across.fit([last] if last > 0 else [])
        self.set_limits(self.axes, (0, last or wide[1]))
        self.set_y_scale(self.axes, span, scale.log)
        beside = []
        for at, (name, (x, y)) in enumerate(cut.items()):
            colour, dashes = LINES[at % len(LINES)]
            shown = np.minimum(np.maximum(y, span[0]) if scale.log else y, span[1])
            with own_look():
                self.axes.plot(x, shown, color=colour, linestyle=dashes, linewidth=2)
            broken = scene[name].broken
            word = f"{name}: inf at {broken}" if broken is not None else f"{name} {short(y[-1])}" if len(y) else name
            spot = self.axes.transData.transform((x[-1], shown[-1])) if len(x) else self.axes.bbox.p0
            if len(x) and x[-1] < 0.5 * self.axes.get_xlim()[1]:  # ends early: named where it ends
                self._word(spot[0] + 12, spot[1], word, colour)
            else:
                beside.append((float(spot[1]), word, colour))
        self._write(beside)

    def _write(self, ends: list[tuple[float, str, str]]) -> None:
        """Put each name beside the end of its curve, pushed apart where ends are close."""
        apart, floor = 17 * self.figure.dpi / 100, -1e9
        placed = []
        for height, word, colour in sorted(ends):
            floor = max(height, floor + apart)
            placed.append((floor, word, colour))
        top = self.axes.bbox.y1
        for height, word, colour in reversed(placed):
            top = min(height, top)
            self._word(self.axes.bbox.x1 + 12, top, word, colour)
            top -= apart

    def _word(self, x: float, y: float, word: str, colour: str) -> None:
        wide, tall = self.figure.bbox.width, self.figure.bbox.height
        with own_look():
            label = self.add_text(x / wide, y / tall, word, weight="bold", color=colour)
        label.set_fontsize(max(6.0, min(10.0, 10.0 * (wide - x - 8) / max(label.wide(), 1.0))))


def comparison_figure(curves: dict[str, Curve], title: str = "loss", width: int = 640, height: int = 340) -> bytes:
    """Draw the mean losses of several runs, each with its own colour, dashes and name at its end; return PNG bytes."""
    panel = _Comparison(width, height)
    panel.heading.set_text(title)
    panel.update(curves)
    return panel.png()


def _finite(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    x, y = numbers(curve.updates), numbers(curve.mean)
    kept = np.isfinite(x) & np.isfinite(y)
    if curve.broken is not None:
        kept &= x <= curve.broken
    return x[kept], y[kept]

"""The swing: what a forgotten zero_grad does to SGD, with its period and its limits predicted and measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

from ...drawing import Drawing
from ...formatting import short
from ...widgets import Instrument, Knob, Settings, View
from . import swing_numbers as numbers
from .swing_panels import draw_map, draw_valley, draw_weight

# What a page without a kernel holds.
_FEW_LRS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.5, 1.9, 2.0, 2.1, 2.5, 3.0, 3.5, 3.9, 4.0, 4.1, 4.5)
_LRS = sorted({*_FEW_LRS, *(tenths / 10 for tenths in range(1, 46))})
_MOMENTA = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_FEW_MOMENTA = (0.5, 0.9)
_CURVATURES = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
_STARTS = [fifths / 5 for fifths in range(-6, 7)]


class Swing(Instrument):
    """SGD on a parabola, with and without zero_grad: its path, its period, and where it runs away."""

    title = "The swing"

    def knobs(self) -> list[Knob]:
        """Return zero_grad, lr, momentum, curvature and the start."""
        return [
            Knob.tick("zero_grad", "zero_grad", start=False),
            Knob.number("lr", "lr", 0.1, 0.01, 4.5, 0.01),
            Knob.number("momentum", "momentum", 0.0, 0.0, 0.99, 0.01),
            Knob.number("curvature", "curvature", 1.0, 0.1, 5.0, 0.1),
            Knob.number("start", "start", 1.0, -numbers.FARTHEST, numbers.FARTHEST, 0.01),
        ]

    def look(self, at: Settings) -> View:
        """Run the loop, and say what becomes of it."""
        path = numbers.run_swing(**at)
        reach = numbers.axis_reach(**{name: value for name, value in at.items() if name != "start"})
        return View(
            panels={
                "weight": partial(draw_weight, path, at["zero_grad"], reach),
                "valley": partial(draw_valley, path, at["curvature"], at["zero_grad"], reach),
                "map": partial(draw_map, *(at[name] for name in ("lr", "curvature", "momentum", "zero_grad"))),
            },
            state=_state(path, **at),
            code=numbers.source(**at),
        )

    def _still(self, view: View) -> tuple[list[Drawing], int, Drawing | None]:
        """Return the weight and the valley beside the loop; the map is there to be dragged, which a still cannot be."""
        drawn = [view.panels[name](*self.size) for name in ("weight", "valley")]
        return drawn, 1, self._code_drawing(view)

    def recorded(self) -> Iterable[Settings]:
        """Return many values of each slider with and without zero_grad, and some of lr at three momenta."""
        for zero_grad in (False, True):
            yield from ({"zero_grad": zero_grad, "lr": lr} for lr in _LRS)
            for momentum in _FEW_MOMENTA:
                yield from ({"zero_grad": zero_grad, "momentum": momentum, "lr": lr} for lr in _FEW_LRS)
            yield from ({"zero_grad": zero_grad, "momentum": momentum} for momentum in _MOMENTA)
            yield from ({"zero_grad": zero_grad, "curvature": curvature} for curvature in _CURVATURES)
            yield from ({"zero_grad": zero_grad, "start": start} for start in _STARTS)


def swing(**start: Any) -> Swing:
    """Return the swing; ``zero_grad``, ``lr``, ``momentum``, ``curvature`` and ``start`` are what it begins with."""
    return Swing(**start)


def _state(path: numbers.SwingPath, lr: float, curvature: float, momentum: float, zero_grad: bool, start: float) -> str:
    s = lr * curvature
    if not start:
        return "The weight starts at the minimum: the gradient is 0 there, and it stays, whatever lr is."
    how = (
        f"{'With' if zero_grad else 'Without'} zero_grad, lr × curvature = {short(s)}"
        + f", momentum {momentum:g}" * bool(momentum)
        + f", from w = {start:g}" * (start != 1.0)
    )
    return f"{how}: the weight {path.fate}. {_period(path)}{_limit(momentum, zero_grad)}"


def _period(path: numbers.SwingPath) -> str:
    if not math.isfinite(path.predicted_period):
        return "It does not change sides. "
    measured = "" if math.isnan(path.measured_period) else f", measured {path.measured_period:.2f}"
    return f"Updates of a whole swing: predicted {path.predicted_period:.2f}{measured}. "


def _limit(momentum: float, zero_grad: bool) -> str:
    if zero_grad:
        return f"It runs away above lr × curvature = {2 * (1 + momentum):g}."
    if momentum:
        return "With momentum and no zero_grad it runs away at every lr."
    return "It never settles, and runs away from lr × curvature = 4 on."

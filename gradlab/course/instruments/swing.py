"""The swing: what a forgotten zero_grad does to SGD, with its period and its limits predicted and measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

from ...formatting import short
from ...widgets import Instrument, Knob, Settings, View
from . import swing_numbers as numbers
from .swing_panels import draw_map, draw_valley, draw_weight

_LRS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.5, 1.9, 2.0, 2.1, 2.5, 3.0, 3.5, 3.9, 4.0, 4.1, 4.5]
_CURVATURES = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0]
_MOMENTA = [0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99]
_RECORDED_MOMENTA = (0.0, 0.5, 0.9)


class Swing(Instrument):
    """SGD on a parabola, with and without zero_grad: its path, its period, and where it runs away."""

    title = "The swing"

    def knobs(self) -> list[Knob]:
        """Return zero_grad, lr, momentum and curvature."""
        number = "{:g}".format
        return [
            Knob.tick("zero_grad", "zero_grad", start=False),
            Knob.slider("lr", "lr", 0.1, _LRS, number),
            Knob.slider("momentum", "momentum", 0.0, _MOMENTA, number),
            Knob.slider("curvature", "curvature", 1.0, _CURVATURES, number),
        ]

    def look(self, at: Settings) -> View:
        """Run the loop, and say what becomes of it."""
        path = numbers.run_swing(**at)
        return View(
            panels={
                "weight": partial(draw_weight, path, at["zero_grad"]),
                "valley": partial(draw_valley, path, at["curvature"], at["zero_grad"]),
                "map": partial(draw_map, *(at[name] for name in ("lr", "curvature", "momentum", "zero_grad"))),
            },
            state=_state(path, **at),
            code=numbers.source(**at),
        )

    def recorded(self) -> Iterable[Settings]:
        """Return every lr with and without zero_grad at three momenta, and every curvature."""
        for zero_grad in (False, True):
            for momentum in _RECORDED_MOMENTA:
                yield from ({"zero_grad": zero_grad, "momentum": momentum, "lr": lr} for lr in _LRS)
            yield from ({"zero_grad": zero_grad, "curvature": curvature} for curvature in _CURVATURES)


def swing(**start: Any) -> Swing:
    """Return the swing; ``zero_grad``, ``lr``, ``momentum`` and ``curvature`` set where it starts."""
    return Swing(**start)


def _state(path: numbers.SwingPath, lr: float, curvature: float, momentum: float, zero_grad: bool) -> str:
    s = lr * curvature
    how = (
        f"{'With' if zero_grad else 'Without'} zero_grad, lr × curvature = {short(s)}"
        + f", momentum {momentum:g}" * bool(momentum)
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

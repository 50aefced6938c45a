"""The swing instrument: the path of a weight that SGD moves on a parabola, with or without zero_grad, and its period.

The loss is ``curvature / 2 * w**2``, so the gradient is ``curvature * w``. With ``s = lr * curvature`` and the momentum
``b``, inserting ``w[t] = z**t`` into the updates gives

    with zero_grad          (z - 1) (z - b) + s z = 0
    without zero_grad       (z - 1)**2 (z - b) + s z**2 = 0     (b = 0: z**2 - (2 - s) z + 1 = 0)

The root ``z`` with the largest absolute value determines the path: an update multiplies the size of the swing by
``|z|``, and advances its phase by the angle of ``z``. Without zero_grad, b = 0 gives the path of b = 1 with
zero_grad. The recurrence is from Polyak, "Some methods of speeding up the convergence of iteration methods" (1964).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from ...drawing import AXES_EDGE, Area, Axes, Axis, Dots, Drawing, Line, Mark, Text, points
from ...formatting import short
from ...widgets import Control, Instrument, Settings, View

UPDATES = 120
_EDGE = 1e-4  # tolerance around 1 for the factor by which an update changes the size of the swing
_FAR = 1e6
_RUNS_TO = 3.0  # end of the weight axis, without margin, for a path that runs away; paths start at 1
# The values of lr, momentum and curvature that are recorded for a page without a kernel.
_FEW_LRS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.5, 1.9, 2.0, 2.1, 2.5, 3.0, 3.5, 3.9, 4.0, 4.1, 4.5)
_LRS = sorted({*_FEW_LRS, *(tenths / 10 for tenths in range(1, 46))})
_MOMENTA = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_FEW_MOMENTA = (0.5, 0.9)
_MAP_END = 4.6  # the largest lr times curvature on the map
_CURVATURES = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)


class Swing(Instrument):
    """The path of a weight that SGD moves on a parabola, its period, and a map of the settings where it runs away."""

    title = "The swing"

    def controls(self) -> list[Control]:
        """Return the controls for zero_grad, lr, momentum and curvature."""
        return [
            Control.tick("zero_grad", "zero_grad", start=False),
            Control.number("lr", "lr", 0.1, 0.01, 4.5, 0.01),
            Control.number("momentum", "momentum", 0.0, 0.0, 0.99, 0.01),
            Control.number("curvature", "curvature", 1.0, 0.1, 5.0, 0.1),
        ]

    def render(self, settings: Settings) -> View:
        """Run the loop at ``settings``, and return a View of the weight's path."""
        path = run_swing(**settings)
        role = "weights" if settings["zero_grad"] else "reused"  # without zero_grad, old gradients are applied again
        weight, valley = draw_weight(path, role), draw_valley(path, settings["curvature"], role)
        panels = {"weight": weight, "valley": valley, "map": draw_map(role=role, **settings)}
        return View(panels, _state_text(path, **settings), code=swing_source(**settings))

    def recorded(self) -> Iterable[Settings]:
        """Yield settings: each lr, momentum and curvature, and few lrs with two momenta, with and without zero_grad."""
        for zero_grad in (False, True):
            yield from ({"zero_grad": zero_grad, "lr": lr} for lr in _LRS)
            for momentum in _FEW_MOMENTA:
                yield from ({"zero_grad": zero_grad, "momentum": momentum, "lr": lr} for lr in _FEW_LRS)
            yield from ({"zero_grad": zero_grad, "momentum": momentum} for momentum in _MOMENTA)
            yield from ({"zero_grad": zero_grad, "curvature": curvature} for curvature in _CURVATURES)


def swing(**start: Any) -> Swing:
    """Return a Swing; ``zero_grad``, ``lr``, ``momentum`` and ``curvature`` set the controls' start values."""
    return Swing(**start)


@dataclass(frozen=True)
class SwingPath:
    """The weights of one run, before each update and after the last, with the predicted and the measured period."""

    weights: tuple[float, ...]  # 1, then the weight after each update, as long as its size is below 1e6
    factor: float  # predicted factor by which an update changes the size of the swing
    stability: str  # the predicted fate of the weight: "settles", "swings for ever" or "runs away"
    predicted_period: float  # in updates, for a swing there and back; inf if the weight does not change its sign
    measured_period: float  # in updates, from the zero crossings of the weight; NaN if there are fewer than three

    @property
    def reach(self) -> float:
        """The upper limit of the weight axis, which is symmetric about 0."""
        most = max(abs(weight) for weight in self.weights)
        return 1.248 * max(1.0, min(_RUNS_TO, most) if self.stability == "runs away" else most)


def swing_source(lr: float, curvature: float, momentum: float, zero_grad: bool) -> str:
    """Return the source code of the training loop, which the instrument runs and shows."""
    clear = "    optimizer.zero_grad()\n" if zero_grad else ""
    beta = f", momentum={momentum:g}" if momentum else ""
    return f"""\
w = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.SGD([w], lr={lr:g}{beta})
for update in range({UPDATES}):
{clear}    loss = {curvature:g} / 2 * w**2
    loss.backward()
    optimizer.step()
    path.append(w.item())
"""


@lru_cache(maxsize=8)
def run_swing(lr: float, curvature: float, momentum: float, zero_grad: bool) -> SwingPath:
    """Run the loop of ``swing_source``, and return the path of the weight with predictions and measurements."""
    path = [1.0]
    text = swing_source(lr, curvature, momentum, zero_grad)
    with torch.enable_grad():
        exec(compile(text, "<the swing>", "exec"), {"torch": torch, "path": path})
    finite = next((index for index, weight in enumerate(path) if not abs(weight) < _FAR), len(path))
    *_, before, root = recurrence_roots(lr * curvature, momentum, zero_grad)
    factor = abs(root)
    double = abs(root - before) < 1e-6  # a double root adds a factor that grows with the number of updates
    stability = "swings for ever" if factor > 1 - _EDGE else "settles"
    if factor > 1 + _EDGE or (double and factor > 1 - _EDGE):
        stability = "runs away"
    angle = abs(math.atan2(root.imag, root.real))
    period = 2 * math.pi / angle if angle > 1e-9 else math.inf
    return SwingPath(tuple(path[:finite]), factor, stability, period, measure_period(path[:finite]))


def recurrence_roots(s: float, momentum: float, zero_grad: bool) -> list[complex]:
    """Return the roots ``z`` of the equation in the module's docstring, sorted by absolute value."""
    coefficients = [s - 1 - momentum, momentum] if zero_grad else [s - 2 - momentum, 1 + 2 * momentum, -momentum]
    return sorted((complex(root) for root in np.roots([1.0, *coefficients])), key=abs)


def measure_period(path: list[float]) -> float:
    """Return the mean period of a path in updates, or NaN if the path crosses zero fewer than three times."""
    crossings = [
        index + before / (before - after)
        for index, (before, after) in enumerate(pairwise(path))
        if before * after < 0 or (after == 0 != before)
    ]
    if len(crossings) < 3:
        return math.nan
    return 2 * (crossings[-1] - crossings[0]) / (len(crossings) - 1)


def _state_text(path: SwingPath, lr: float, curvature: float, momentum: float, zero_grad: bool) -> str:
    how = f"{'With' if zero_grad else 'Without'} zero_grad, lr × curvature = {short(lr * curvature)}"
    how += f", momentum {momentum:g}" * bool(momentum)
    period = "It does not change sides."
    if math.isfinite(path.predicted_period):
        measured = "" if math.isnan(path.measured_period) else f", measured {path.measured_period:.2f}"
        period = f"Updates of a whole swing: predicted {path.predicted_period:.2f}{measured}."
    limit = "It never settles, and runs away from lr × curvature = 4 on."
    if zero_grad:
        limit = f"It runs away above lr × curvature = {2 * (1 + momentum):g}."
    elif momentum:
        limit = "With momentum and no zero_grad it runs away at every lr."
    return f"{how}: the weight {path.stability}. {period} {limit}"


def _corner_texts(path: SwingPath) -> tuple[str, ...]:
    if not math.isfinite(path.predicted_period):
        return ("no swing",)
    if math.isnan(path.measured_period):
        return (f"period {short(path.predicted_period)} predicted",)
    predicted = f"period {path.predicted_period:.2f}"
    return f"{predicted} predicted, {path.measured_period:.2f} measured", predicted


def draw_weight(path: SwingPath, role: str) -> Drawing:
    """Draw the weight over the updates."""
    weights = np.array(path.weights)
    inside = np.flatnonzero(np.abs(weights) <= path.reach)
    gone = int(inside[-1]) + 1  # from this update on, the weight is outside the picture
    shown, readout = weights[: gone + 1], "update {x}: w = {y}"
    marks: list[Mark] = [
        Line("lowest", (-AXES_EDGE, 0.0, AXES_EDGE, 0.0), "faint", words="the minimum: w = 0"),
        Line("path", points(range(len(shown)), shown), role, 1.8),
        Dots("weights", points(inside, weights[inside]), size=5.0, fill=role, readout=readout),
    ]
    if gone < len(weights):
        texts = (f"out of the picture from update {gone}",)
        marks.append(Text("gone", texts, AXES_EDGE, AXES_EDGE, where="top", role="wrong", bold=True, backed=True))
    axes = Axes(Axis(0.0, UPDATES, words="updates", ticks="updates"), Axis(-path.reach, path.reach))
    description = f"It {path.stability}. The weight starts at 1; the minimum is at 0."
    return Drawing("the weight, update by update", marks, (axes,), description, _corner_texts(path))


def draw_valley(path: SwingPath, curvature: float, role: str) -> Drawing:
    """Draw the loss as a curve over the weight, and the path on the curve, with its last point in a darker colour."""
    reach = path.reach
    along = np.linspace(-reach, reach, 81)
    weights = np.array([weight for weight in path.weights if abs(weight) <= reach])
    visited = points(weights, curvature / 2 * weights**2)
    last = f"w = {short(float(weights[-1]))}"
    marks: list[Mark] = [
        Line("valley", points(along, curvature / 2 * along**2), "loss", 2.0, words=f"loss = {curvature:g} / 2 · w²"),
        Line("path", visited, f"{role}/45", 1.2),
        Dots("old", visited[:-2], size=6.0, fill=f"{role}/45", readout="w = {x}: loss {y}"),
        Dots("last", visited[-2:], size=10.0, fill=role, words=f"after {len(weights) - 1} updates: {last}"),
        Dots("start", visited[:2], size=14.0, fill="paper", stroke=role, width=2.5, words="the start: w = 1"),
    ]
    axes = Axes(Axis(-reach, reach, words="weight"), Axis(0.0, curvature / 2 * reach**2 * 1.05, words="loss"))
    description = f"From w = 1 the path visits {len(weights)} places; the last one shown is {last}."
    return Drawing("its path in the bowl", marks, (axes,), description)


def draw_map(lr: float, curvature: float, momentum: float, zero_grad: bool, role: str) -> Drawing:
    """Draw the regions where SGD settles or runs away, on axes of lr x curvature and momentum (1 without zero_grad)."""
    s = lr * curvature
    spot = min(s, _MAP_END), momentum if zero_grad else 1.0
    straight = np.linspace(0.0, 1.0, 41)
    edge = points((1 - np.sqrt(straight)) ** 2, straight)  # on this edge, two real roots become complex
    limit = "lr × curvature = 2 + 2 · momentum"
    here = f"lr × curvature = {short(s)}, " + (f"momentum {momentum:g}" if zero_grad else "no zero_grad")
    marks: list[Mark] = [
        Area("runs away", (2, 0, _MAP_END, 0, _MAP_END, 1, 4, 1), "wrong/25", words=f"beyond {limit}: runs away"),
        Area("swings", (*edge, 4, 1, 2, 0), "grey/25", words="swings, less far each time"),
        Line("limit", (2, 0, 4, 1), "wrong", 2.0, words=limit),
        Line("for ever", (0, 1, 4, 1), "reused", 5.0, words="momentum 1, or no zero_grad: swings for ever"),
        Text("forever word", ("swings for ever: no zero_grad",), 2.0, 1.08, where="center", role="reused", bold=True),
        Text("swings word", ("swings, then settles",), 1.6, 0.55, where="center", bold=True),
        Text("away word", ("runs away",), 3.8, 0.4, where="center", role="wrong", bold=True),
        Text("straight word", ("settles",), 0.33, 0.045, where="center", size=11.0, bold=True),
        Dots("here", spot, size=15.0, fill=role, stroke="paper", width=2.0, words=f"here: {here}"),
    ]
    axes = Axes(Axis(0.0, _MAP_END, words="lr × curvature"), Axis(0.0, 1.16, words="momentum"))
    beyond = "" if zero_grad or not momentum else " With momentum as well it is beyond this map."
    return Drawing("all swings of SGD", marks, (axes,), f"You are at {here}.{beyond}", (f"you: {here}", here))

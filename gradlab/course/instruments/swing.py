"""The swing: what a forgotten zero_grad does to SGD, with its period and its limits predicted and measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...drawing import Axes, Axis, Dots, Drag, Drawing, Image, PanelBuilder, Path, Side, Spot, panel_axes
from ...formatting import short
from ...widgets import Control, Instrument, Settings, View
from . import swing_numbers as numbers

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

    def controls(self) -> list[Control]:
        """Return zero_grad, lr, momentum, curvature and the start."""
        return [
            Control.tick("zero_grad", "zero_grad", start=False),
            Control.number("lr", "lr", 0.1, 0.01, 4.5, 0.01),
            Control.number("momentum", "momentum", 0.0, 0.0, 0.99, 0.01),
            Control.number("curvature", "curvature", 1.0, 0.1, 5.0, 0.1),
            Control.number("start", "start", 1.0, -numbers.FARTHEST, numbers.FARTHEST, 0.01),
        ]

    def render(self, at: Settings) -> View:
        """Run the loop, and say what becomes of it."""
        loop = at["lr"], at["curvature"], at["momentum"], at["zero_grad"]
        path, reach = numbers.run_swing(*loop, at["start"]), numbers.axis_reach(*loop)
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
    return f"{how}: the weight {path.stability}. {_period(path)}{_limit(momentum, zero_grad)}"


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


HIGHEST = 4.6
"""lr times curvature up to which the map reaches."""
_COLUMNS, _ROWS = 92, 40


def draw_weight(path: numbers.SwingPath, zero_grad: bool, reach: float, width: int, height: int) -> Drawing:
    """Draw the weight before each update as far as ``reach``, with the predicted envelope dashed."""
    panel = PanelBuilder("the weight, update by update", width, height)
    axes = panel_axes(width, height, Side(0, numbers.UPDATES, words="updates", ticks="updates"), Side(-reach, reach))
    panel.axes(axes)
    middle = axes.y.at(0)
    panel.add(
        Path("lowest", (axes.left, middle, axes.right, middle), stroke="faint", width=1.5, words="the minimum: w = 0")
    )
    at = np.arange(numbers.UPDATES + 1, dtype=float)
    envelope = path.largest * path.factor**at
    for name, side in (("above", 1.0), ("below", -1.0)):
        kept = envelope <= reach
        panel.add(
            Path(
                name,
                axes.places(at[kept], side * envelope[kept]),
                stroke="grey",
                dash="dashed",
                words=f"predicted: times {path.factor:.3g} an update",
            )
        )
    weights = np.array(path.weights)
    kept = np.abs(weights) <= reach
    shown = np.where(kept, weights, np.nan)
    panel.add(Path("path", axes.places(np.arange(len(weights), dtype=float), shown), stroke=role(zero_grad), width=1.8))
    panel.add(
        Dots("weights", axes.places(np.flatnonzero(kept).astype(float), weights[kept]), size=5.0, fill=role(zero_grad))
    )
    panel.corner(*_corner(path))
    if not kept.all():
        first = int(np.flatnonzero(kept)[-1]) + 1  # it may have come back before
        panel.label(
            "gone",
            [Spot(f"out of the picture from update {first}", axes.right - 4, axes.top + 12, "end")],
            role="wrong",
            bold=True,
            backed=True,
        )
    return panel.finish(f"{_said(path)} The weight starts at {path.weights[0]:g}; the minimum is at 0.")


def draw_valley(
    path: numbers.SwingPath, curvature: float, zero_grad: bool, reach: float, width: int, height: int
) -> Drawing:
    """Draw the loss over the weight, and the path in it, older places paler; its start can be dragged."""
    panel = PanelBuilder("its path in the valley", width, height)
    axes = panel_axes(
        width, height, Side(-reach, reach, words="weight"), Side(0, curvature / 2 * reach**2 * 1.05, words="loss")
    )
    panel.axes(axes)
    along = np.linspace(-reach, reach, 81)
    panel.add(
        Path(
            "valley",
            axes.places(along, curvature / 2 * along**2),
            stroke="loss",
            width=2.0,
            words=f"loss = {curvature:g} / 2 · w²",
        )
    )
    weights = np.array([weight for weight in path.weights if abs(weight) <= reach])
    places = axes.places(weights, curvature / 2 * weights**2)
    panel.add(Path("path", places, stroke=f"{role(zero_grad)}/45", width=1.2))
    panel.add(Dots("old", places[:-2], size=6.0, fill=f"{role(zero_grad)}/45"))
    if len(weights) > 1:
        panel.add(
            Dots(
                "last",
                places[-2:],
                size=10.0,
                fill=role(zero_grad),
                words=f"after {len(weights) - 1} updates: w = {short(float(weights[-1]))}",
            )
        )
    start = f"w = {path.weights[0]:g}"
    panel.add(
        Dots(
            "start",
            places[:2],
            size=14.0,
            fill="paper",
            stroke=role(zero_grad),
            width=2.5,
            words=f"the start: {start}. Drag it to another one.",
            drag=Drag("start", axes.x.axis, axes.y.axis),
        )
    )
    return panel.finish(
        f"From {start} the path visits {len(weights)} places; the last one shown is w = {short(float(weights[-1]))}."
    )


def draw_map(lr: float, curvature: float, momentum: float, zero_grad: bool, width: int, height: int) -> Drawing:
    """Draw what becomes of the swing for each lr times curvature and momentum; the dot can be dragged."""
    panel = PanelBuilder("what becomes of it", width, height)
    axes = panel_axes(width, height, Side(0, HIGHEST, words="lr × curvature"), Side(0, 1, words="momentum"))
    cells = _stability_cells(zero_grad)
    across, down = axes.right - axes.left, axes.bottom - axes.top
    fills = ("grey/10", "grey/38", "wrong/25")
    panel.add(
        Image(
            "stability",
            axes.left,
            axes.top,
            across,
            down,
            _COLUMNS,
            cells.ravel(),
            fills,
            "pale: settles; grey: swings while it settles or for ever; red: runs away",
        )
    )
    panel.axes(axes)
    if not zero_grad:
        line = (axes.x.at(0), axes.y.at(0), axes.x.at(4), axes.y.at(0))
        panel.add(
            Path(
                "for ever",
                line,
                stroke="ink",
                width=4.0,
                words="momentum 0 without zero_grad: swings for ever, up to lr × curvature = 4",
            )
        )
    _name_regions(panel, axes, zero_grad)
    s = lr * curvature
    place = (axes.x.at(min(s, HIGHEST)), axes.y.at(momentum))
    pull = Drag("lr", _read_as_lr(axes, curvature), axes.y.axis)
    panel.add(
        Dots(
            "here",
            place,
            size=15.0,
            fill=role(zero_grad),
            stroke="paper",
            width=2.0,
            words=f"here: lr × curvature = {short(s)}, momentum {momentum:g}. Drag it to turn lr.",
            drag=pull,
        )
    )
    panel.corner(f"lr × curvature = {short(s)}", f"at {short(s)}")
    return panel.finish(
        f"lr × curvature is {short(s)} and momentum {momentum:g}, {'with' if zero_grad else 'without'} zero_grad."
    )


@lru_cache(maxsize=2)
def _stability_cells(zero_grad: bool) -> np.ndarray:
    """Return 0 for settles, 1 for settles but changes sides, 2 for runs away, rows from momentum 1 down to 0."""
    s = (np.arange(_COLUMNS) + 0.5) / _COLUMNS * HIGHEST
    momentum = 1 - (np.arange(_ROWS) + 0.5) / _ROWS
    found = numbers.recurrence_roots(*np.meshgrid(s, momentum), zero_grad)
    sizes = np.abs(found)
    leading = np.take_along_axis(found, sizes.argmax(axis=-1)[..., None], -1)[..., 0]
    swings = (np.abs(leading.imag) > 1e-9) | (leading.real < 0)
    return np.where(sizes.max(axis=-1) > 1, 2, swings.astype(int))


def _name_regions(panel: PanelBuilder, axes: Axes, zero_grad: bool) -> None:
    """Write what becomes of the swing into each region, which follows from the stability limit s < 2 (1 + momentum)."""
    if zero_grad:
        spots = [("settles", 0.36, 0.06), ("settles, swinging", 1.5, 0.6), ("runs away", 3.55, 0.3)]
    else:
        spots = [("runs away", 2.3, 0.55)]
        panel.label(
            "line", [Spot("swings for ever", axes.x.at(1.6), axes.y.at(0.09), "middle")], bold=True, backed=True
        )
    for text, s, momentum in spots:
        role = "wrong" if text == "runs away" else "ink"
        panel.label(f"region {text}", [Spot(text, axes.x.at(s), axes.y.at(momentum), "middle")], role=role, bold=True)


def _read_as_lr(axes: Axes, curvature: float) -> Axis:
    axis = axes.x.axis
    return Axis(axis.start / curvature, axis.per_pixel / curvature)


def _corner(path: numbers.SwingPath) -> list[str]:
    if not math.isfinite(path.predicted_period):
        return ["no swing"]
    if math.isnan(path.measured_period):
        return [f"period {short(path.predicted_period)} predicted"]
    return [
        f"period {path.predicted_period:.2f} predicted, {path.measured_period:.2f} measured",
        f"period {path.predicted_period:.2f}",
    ]


def _said(path: numbers.SwingPath) -> str:
    if not path.weights[0]:
        return "It stays where it starts."
    return f"It {path.stability}."


def role(zero_grad: bool) -> str:
    """Return the colour of a path: one without zero_grad follows stale gradients."""
    return "weights" if zero_grad else "stale"

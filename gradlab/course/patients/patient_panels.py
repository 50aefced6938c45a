"""The pictures of a patient: what was measured at each update, of one run or of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...drawing import (
    Dots,
    Drag,
    Drawing,
    PanelBuilder,
    Path,
    Readout,
    Side,
    Spot,
    make_axes,
    value_limits,
)
from ...formatting import short

_STYLES = {"sick": ("wrong", "dashed", 1.8), "healthy": ("loss", "", 1.8)}
_MOST_POINTS = 600
_ASIDE = (0.0, -8.0, 8.0, -16.0, 16.0, -30.0, 30.0)  # CSS pixels from the end of a curve to its name
_OVER = (-30.0, 30.0, 0.0)  # of one that ends early, so that it does not stand on another one
_NAMES = 124.0  # CSS pixels at the right of the axes for the names of the curves


@dataclass(frozen=True)
class PatientCurve:
    """Numbers of one run, the first at 1."""

    name: str
    values: Sequence[float]
    sick: bool


def draw_curves(
    title: str, across: str, curves: Sequence[PatientCurve], at: int | None, width: int, height: int
) -> Drawing:
    """Draw curves on one pair of axes; ``at`` is the place that a slider has chosen on the last one, None for none."""
    panel = PanelBuilder(title, width, height)
    kept = [(curve, *_finite(curve.values)) for curve in curves]
    values = np.concatenate([y for _, _, y in kept] or [np.zeros(0)])
    low, high, log = value_limits(values, 1.15)
    last = max((len(curve.values) for curve in curves), default=1)
    right = width - min(_NAMES, 0.32 * width)
    axes = make_axes(
        (width, height),
        54.0,
        34.0,
        right,
        height - 38.0,
        Side(0.0, float(max(last, 2)), words=across, ticks="updates"),
        Side(low, high, log, words=""),
    )
    panel.axes(axes)
    panel.corner("logarithmic" if log else "")
    said = []
    for curve, x, y in kept:
        role, dash, thick = _STYLES["sick" if curve.sick else "healthy"]
        if not len(x):
            said.append(f"{curve.name}: nothing")
            continue
        places = axes.places(x, y)
        readout = Readout(f"{curve.name}, {across[:-1]} {{x}}: {{y}}", axes.x.axis, axes.y.axis)
        if len(x) > 1:
            panel.add(Path(f"curve {curve.name}", places, stroke=role, width=thick, dash=dash, readout=readout))
        else:
            panel.add(Dots(f"curve {curve.name}", places, size=8.0, fill=role, words=f"{curve.name}: {short(y[0])}"))
        end = "then it stops" if len(curve.values) < last else short(float(y[-1]))
        if not math.isfinite(curve.values[-1]):
            end = "then inf or NaN"
        said.append(f"{curve.name}: {short(float(y[0]))} at first, {short(float(y[-1]))} at the end")
        x_name = axes.right + 8 if len(curve.values) == last else float(places[-2]) + 8
        role = f"{role}-text" if role == "wrong" else role
        early = len(curve.values) < last
        for text in (f"{curve.name}{',' * early} {end}", end, curve.name):  # the first that has room
            spots = [Spot(text, x_name, float(places[-1]) + down) for down in (_OVER if early else _ASIDE)]
            if panel.label(f"name {curve.name}", spots, size=12.0, bold=True, role=role):
                break
    if at is not None and kept:
        curve, _, _ = kept[-1]
        value = curve.values[at - 1] if 1 <= at <= len(curve.values) else math.nan
        x_at = axes.x.at(float(at))
        panel.add(Path("chosen", (x_at, axes.bottom, x_at, axes.top), stroke="grey", width=1.0, dash="dotted"))
        drag = Drag("update", axes.x.axis, axes.y.axis)
        if math.isfinite(value):
            words = f"{across[:-1]} {at:,}: {short(value)}; drag it to another"
            spot = (x_at, axes.y.at(value))
            panel.add(Dots("here", spot, size=11.0, fill="paper", stroke="ink", width=1.5, words=words, drag=drag))
    return panel.finish(f"{title}. " + "; ".join(said) + "." if said else f"{title}: nothing was seen.")


def _finite(values: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    y = np.array(values, dtype=float)
    x = np.arange(1, len(y) + 1, dtype=float)
    kept = np.isfinite(y)
    x, y = x[kept], y[kept]
    if len(x) > _MOST_POINTS:
        chosen = np.unique(np.linspace(0, len(x) - 1, _MOST_POINTS).astype(int))
        x, y = x[chosen], y[chosen]
    return x, y

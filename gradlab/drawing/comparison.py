"""The loss of several recipes on one pair of axes, each curve with its own colour, dashes and name at its end."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from itertools import cycle

import numpy as np

from ..formatting import short
from ..scenes import Curve
from .axes import Axes, Side, make_axes
from .builder import PanelBuilder
from .labels import Spot
from .lettering import shorten, text_width
from .limits import Numbers, from_zero, numbers, value_limits
from .loss import by_column
from .marks import Drawing, Path, Readout

# A curve is told by its colour, its dashes and the name at its end. The colours keep their meaning: stale for a loop
# that applies gradients again, and none of weights, gradients or memory for those that do not.
FRESH_LINES = (
    ("loss", ""),
    ("grey", "dashed"),
    ("loss", "dotted"),
    ("grey", "dashdot"),
    ("loss", "dashed"),
    ("grey", ""),
    ("loss", "dashdot"),
)
STALE_LINES = tuple(("stale", dash) for dash in ("dashed", "dotted", "dashdot", ""))
TALLEST = 3.0  # how far a diverging curve is followed, in units of the highest loss of those that do not diverge
_APART = 16.0  # CSS pixels from name to name


def draw_comparison(
    curves: Mapping[str, Curve],
    title: str = "loss",
    width: int = 640,
    height: int = 340,
    *,
    stale: Collection[str] = (),
    events: Mapping[int, str] | None = None,
    counted: str = "updates",
) -> Drawing:
    """Draw the mean losses of several runs; ``stale`` names those that apply gradients again.

    ``events`` marks updates with a dotted line and words; ``counted`` names what else the axis counts. A run that
    diverges leaves the picture at the top. What is written at its end is the loss of the newest update.
    """
    panel = PanelBuilder(title, width, height)
    lines = {name: _finite(curve) for name, curve in curves.items()}
    tame = [y for name, (_, y) in lines.items() if curves[name].broken is None and len(y)]
    most = TALLEST * max((float(y.max()) for y in tame), default=np.inf)
    low, high, log = value_limits(np.concatenate([y[y <= most] for _, y in lines.values()] or [np.zeros(0)]))
    last = max((float(x[-1]) for x, _ in lines.values() if len(x)), default=0.0)
    right = width - min(170.0, 0.4 * width)
    across = Side(0.0, last if last > 0 else from_zero(last), words=counted, ticks="updates")
    axes = make_axes((width, height), 54.0, 34.0, right, height - 38.0, across, Side(low, high, log))
    panel.axes(axes)
    ends, words = [], []
    looks = {True: cycle(STALE_LINES), False: cycle(FRESH_LINES)}
    for at, (name, (x, y)) in enumerate(lines.items()):
        role, dash = next(looks[name in stale])
        columns = by_column(axes.x.place(x), y, y, y)
        places = np.column_stack([columns[:, 0], axes.y.place(columns[:, 1])])
        broken = curves[name].broken
        newest = curves[name].now if math.isfinite(curves[name].now) else float(y[-1]) if len(y) else math.nan
        end = f"inf at {broken:,}" if broken is not None else short(newest) if len(y) else ""
        readout = Readout(f"{name}, about update {{x}}: loss {{y}}", axes.x.axis, axes.y.axis)
        panel.add(Path(f"curve {at}", places.ravel(), stroke=role, width=2.0, dash=dash, readout=readout))
        text = f"{name}: {end}" if broken is not None else f"{name} {end}".strip()
        words.append(f"{name} {end}".strip())
        x_end, y_end = places[-1].tolist() if len(places) else (axes.left, axes.bottom)
        ends.append((y_end, x_end, text, role, at))
    _add_names(panel, axes, ends)
    for update, said in (events or {}).items():
        place = axes.x.at(float(update))
        panel.add(
            Path(f"event {update}", (place, axes.top, place, axes.bottom), stroke="grey", width=1.0, dash="dotted")
        )
        spots = [Spot(said, place + 6, axes.top + 8), Spot(said, place - 6, axes.top + 8, "end")]
        panel.label(f"event {update} word", spots, role="grey", backed=True)
    return panel.finish(f"{title}: {'; '.join(words)}." if words else f"{title}: nothing was run.")


def _add_names(panel: PanelBuilder, axes: Axes, ends: list[tuple[float, float, str, str, int]]) -> None:
    """Put each name beside the end of its curve, pushed apart where ends are close."""
    beside = sorted((end for end in ends if end[1] >= (axes.left + axes.right) / 2), reverse=True)
    floor, heights = axes.bottom, []
    for y, *_ in beside:
        floor = min(y, floor)
        heights.append(floor)
        floor -= _APART
    top = axes.top
    for number in range(len(heights) - 1, -1, -1):
        top = max(top, heights[number])
        heights[number] = top
        top += _APART
    for (_, _, text, role, at), y in zip(beside, heights, strict=True):
        _add_name(panel, [(axes.right + 10, y)], text, role, at)
    for y, x, text, role, at in ends:
        if x < (axes.left + axes.right) / 2:  # ends early: named where it ends
            _add_name(panel, [(x + 10, y + down) for down in (0.0, 16.0, -16.0, 32.0)], text, role, at)


def _add_name(panel: PanelBuilder, places: list[tuple[float, float]], text: str, role: str, at: int) -> None:
    for size in (13.0, 11.0):
        fits = [Spot(text, x, y) for x, y in places if x + text_width(text, size, True) <= panel.width - 4]
        if panel.label(f"name {at}", fits, size=size, bold=True, role=_readable(role)):
            return
    cut = [Spot(shorten(text, panel.width - x - 6, 11.0, bold=True, keep_end=True), x, y) for x, y in places]
    panel.label(f"name {at}", cut, size=11.0, bold=True, role=_readable(role))


def _readable(role: str) -> str:
    return role if role == "loss" else f"{role}-text"


def _finite(curve: Curve) -> tuple[Numbers, Numbers]:
    x, y = numbers(curve.updates), numbers(curve.mean)
    kept = np.isfinite(x) & np.isfinite(y)
    if curve.broken is not None:
        kept &= x <= curve.broken
    return x[kept], y[kept]

"""A pair of axes: limits on round numbers, where a value lies, and the marks of spines, ticks and their words.

Limits are rounded to a ladder of round numbers, so that they move rarely; the same data, the same limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import MaxNLocator

from ..formatting import bytes_text, short
from .labels import Box, Placer, Spot
from .marks import Axis, Mark, Path

LADDER = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""Of limits: these numbers times a power of ten."""
LARGEST_DRAWN = 1e300
"""Beyond this, margins and tick steps would overflow a double."""
LOG_FROM = 300.0
"""An axis is logarithmic when its largest value is more than so many times its smallest."""
_DECADES = 12.0  # that a logarithmic axis reaches down at most

Numbers = npt.NDArray[np.float64]


def numbers(values: Iterable[Any]) -> Numbers:
    """Turn plain numbers, or pairs of them, into an array in which every finite value is small enough to draw."""
    array = np.array(values if hasattr(values, "__len__") else list(values), dtype=np.float64)
    if np.maximum.reduce(np.abs(array), axis=None, initial=0.0) <= LARGEST_DRAWN:  # none is NaN or infinite either
        return array
    large = np.isfinite(array) & (np.abs(array) > LARGEST_DRAWN)
    array[large] = np.copysign(LARGEST_DRAWN, array[large])
    return array


def nice_step(value: float, ladder: tuple[float, ...] = LADDER) -> float:
    """Round a positive number up to the next rung: a number of the ladder times a power of ten."""
    if not value > 1e-300:
        return 1e-300
    power = 10.0 ** math.floor(math.log10(value))
    return next((power * rung for rung in ladder if power * rung >= value * (1 - 1e-12)), power * 10)


def from_zero(highest: float) -> float:
    """Return the upper limit of an axis that begins at 0; 1 where there is nothing to show."""
    return nice_step(highest * 1.02) if 0 < highest < math.inf else 1.0


def around(low: float, high: float) -> tuple[float, float]:
    """Return limits that hold two finite numbers, on multiples of a quarter of the rounded span."""
    span = high - low
    if span <= 1e-12 * max(abs(low), abs(high)):
        span = max(abs(high) * 0.5, 1e-12) if high else 1.0
    step = nice_step(span) / 4
    return math.floor(low / step) * step, (math.floor(high / step) + 1) * step


def value_limits(
    values: Numbers, room: float = 1.0, *, log_from: float = LOG_FROM, close: bool = False
) -> tuple[float, float, bool]:
    """Return the limits for finite values, and whether the axis is logarithmic: where they lie too far apart.

    ``room`` times the span is kept free above them. A linear axis begins at 0 unless a value is negative, or
    the limits are to be ``close`` to the values.
    """
    if not len(values):
        return 0.0, 1.0, False
    low, high = float(values.min()), float(values.max())
    if low > 0 or (low == 0 and high > 0):
        smallest = low if low > 0 else float(values[values > 0].min())
        spread = math.log10(high) - math.log10(smallest)  # the ratio of 1e300 to 1e-300 is no float
        if spread > math.log10(log_from):
            top = math.log10(high)
            bottom = max(math.log10(smallest), top - _DECADES)
            bottom, top = around(bottom, bottom + (top - bottom) * room)
            return 10.0 ** max(bottom, -305.0), 10.0 ** min(top, 305.0), True
    if low >= 0 and not close:
        return 0.0, from_zero(high * room), False
    return *around(low, low + (high - low) * room), False


TICK = 12.0
"""Size of the words at ticks, in CSS pixels."""
SUPERSCRIPTS = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_LONG = 4.0  # CSS pixels of a tick
_LOWEST_LOG = -320.0


@dataclass(frozen=True, slots=True)
class Scale:
    """How values lie along one direction: ``low`` at the place ``start``, ``high`` at ``end``, in CSS pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, values: Numbers) -> Numbers:
        """Return the places of values; those beyond the limits lie on the edge, NaN stays NaN."""
        low, high = self.low, self.high
        if self.log:
            low, high = math.log10(low), math.log10(high)
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.log10(np.maximum(values, 10.0**_LOWEST_LOG))
        values = np.minimum(np.maximum(values, low), high)
        # halves, so that a span from -1e300 to 1e300 does not overflow
        return self.start + (values / 2 - low / 2) * ((self.end - self.start) / (high / 2 - low / 2))

    def at(self, value: float) -> float:
        """Return the place of one value."""
        low, high = self.low, self.high
        if self.log:
            low, high = math.log10(low), math.log10(high)
            value = math.log10(max(value, 10.0**_LOWEST_LOG))
        share = (min(max(value, low), high) / 2 - low / 2) / (high / 2 - low / 2)
        return self.start + share * (self.end - self.start)

    @property
    def axis(self) -> Axis:
        """How a place is read as a value."""
        low, high = (math.log10(self.low), math.log10(self.high)) if self.log else (self.low, self.high)
        per_pixel = (high - low) / (self.end - self.start)
        return Axis(low - per_pixel * self.start, per_pixel, self.log)


class Side(NamedTuple):
    """What one axis shows: its limits, the words beside it, and how its ticks are written."""

    low: float
    high: float
    log: bool = False
    words: str = ""
    ticks: str = "number"
    """"number", "updates", "bytes", "powers" (of 2), "shares" (of 1), "ticks only" or "none"."""


@dataclass(frozen=True, eq=False)
class Axes:
    """Two scales with the marks that show them."""

    left: float
    top: float
    right: float
    bottom: float
    x: Scale
    y: Scale
    marks: tuple[Mark, ...]
    boxes: tuple[Box, ...]
    """What the words at the axes cover."""

    def places(self, x: Numbers, y: Numbers) -> Numbers:
        """Return points as a Path has them."""
        out = np.empty((len(x), 2))
        out[:, 0], out[:, 1] = self.x.place(x), self.y.place(y)
        return out.ravel()


@lru_cache(maxsize=256)
def make_axes(
    size: tuple[float, float],
    left: float,
    top: float,
    right: float,
    bottom: float,
    x: Side,
    y: Side,
    name: str = "axes",
) -> Axes:
    """Return axes in a panel of this ``size`` whose edges lie at these places; the same object for the same axes."""
    across = Scale(x.low, x.high, left, right, x.log)
    up = Scale(y.low, y.high, bottom, top, y.log)
    lines = [*([left, top] if y.ticks != "none" else []), left, bottom, right, bottom]
    placer = Placer(*size)
    texts: list[Mark | None] = []
    lowest = bottom
    for at, value in enumerate(_ticks(x, right - left, 75.0)):
        place = across.at(value)
        lines += [math.nan, math.nan, place, bottom, place, bottom + _LONG]
        spots = [Spot(_FORMATS[x.ticks](value), place, bottom + _LONG + 11, "middle")]
        lowest = bottom + _LONG + 18
        texts.append(placer.place(f"{name} x{at}", spots, size=TICK))
    for at, value in enumerate(_ticks(y, bottom - top, 38.0)):
        place = up.at(value)
        lines += [math.nan, math.nan, left - _LONG, place, left, place]
        spots = [Spot(_FORMATS[y.ticks](value), left - _LONG - 3, place, "end")]
        texts.append(placer.place(f"{name} y{at}", spots, size=TICK))
    middle = Spot(x.words, (left + right) / 2, lowest + 8, "middle")
    texts.append(placer.place(f"{name} x", [middle]))
    texts.append(placer.place(f"{name} y", [Spot(y.words, left - 44, (top + bottom) / 2, "middle")], angle=90.0))
    marks = (Path(name, np.array(lines), stroke="grey", width=1.0), *(text for text in texts if text))
    return Axes(left, top, right, bottom, across, up, marks, tuple(placer.boxes))


def panel_axes(width: float, height: float, x: Side, y: Side, *, top: float = 30.0) -> Axes:
    """Return axes that fill a panel but for its title, and for words and ticks at the left and below."""
    return make_axes((width, height), 54.0, top, width - 16.0, height - 38.0, x, y)


def byte_ticks(top: float) -> list[float]:
    """Return up to six places from 0 to ``top`` on round numbers of KiB, MiB, GiB or TiB."""
    unit = max((unit for unit in (1024.0**power for power in range(6)) if unit <= top / 1.5), default=1.0)
    steps = (256, 512) if 0.97 * top > 999 * unit else (1, 2, 5, 10, 20, 50, 100, 200)  # none is written "0.98 MiB"
    step = next((s * unit for s in steps if top / (s * unit) <= 5.5), top / 4)
    ticks: list[float] = np.arange(0, top * 0.97, step).tolist()
    return ticks


def _ticks(side: Side, long: float, each: float) -> Iterable[float]:
    """Return the places of ticks, about one for ``each`` pixels of the ``long`` axis."""
    low, high = side.low, side.high
    count = int(min(max(long / each, 2), 10))
    if side.ticks == "none":
        return []
    if side.ticks == "bytes":
        return byte_ticks(high)
    if side.ticks == "shares":
        return [0.0, 1.0]
    if side.log:
        bottom, top = math.log10(low), math.log10(high)
        step = max(1, math.ceil((top - bottom) / count))
        return [10.0**power for power in range(math.ceil(bottom - 1e-9), math.floor(top + 1e-9) + 1, step)]
    whole = side.ticks in ("updates", "powers", "ticks only")
    found = MaxNLocator(count, steps=[1, 2, 5, 10], integer=whole).tick_values(low, high)
    slack = 1e-9 * (high - low)
    return [0.0 if abs(value) < slack else float(value) for value in found if low - slack <= value <= high + slack]


_FORMATS: dict[str, Callable[[float], str]] = {
    "number": short,
    "updates": lambda value: f"{value:,.0f}" if value < 1e5 else short(value),
    "bytes": bytes_text,
    "powers": lambda value: f"2{str(round(value)).translate(SUPERSCRIPTS)}",
    "shares": lambda value: f"{value:.0%}",
    "none": str,
    "ticks only": lambda value: "",
}

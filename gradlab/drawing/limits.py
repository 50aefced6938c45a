"""Limits of axes: round numbers that depend only on the data, so that they rarely change."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from .marks import Axis

LADDER = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)  # nice_step() returns one of these numbers times a power of ten
LARGEST_DRAWN = 1e290  # above this, margins and tick steps would overflow a double
_DECADES = 12.0  # largest number of decades that a log axis shows below the largest value

Numbers = npt.NDArray[np.float64]


def numbers(values: Iterable[Any]) -> Numbers:
    """Return numbers or pairs of numbers as an array, with finite values clipped to ``LARGEST_DRAWN`` in magnitude."""
    array = np.array(values if hasattr(values, "__len__") else list(values), dtype=np.float64)
    if np.maximum.reduce(np.abs(array), axis=None, initial=0.0) <= LARGEST_DRAWN:  # also false for NaN and inf
        return array
    return np.where(np.isinf(array), array, np.clip(array, -LARGEST_DRAWN, LARGEST_DRAWN))


def points(*columns: Any) -> Numbers:
    """Return columns of numbers, interleaved like the points of a mark: x0, y0, x1, y1, ..."""
    return np.column_stack(columns).ravel()


def box_points(x: float, y: float, half_width: float, half_height: float) -> tuple[float, ...]:
    """Return the corners of a box around the point (``x``, ``y``), as x0, y0, x1, y1, ..."""
    left, right, low, high = x - half_width, x + half_width, y - half_height, y + half_height
    return left, low, right, low, right, high, left, high


def nice_step(value: float) -> float:
    """Return ``value`` rounded up to a number in ``LADDER`` times a power of ten, but at least 1e-300."""
    if not value > 1e-300:
        return 1e-300
    power = 10.0 ** math.floor(math.log10(value))
    return next((power * rung for rung in LADDER if power * rung >= value * (1 - 1e-12)), power * 10)


def from_zero(highest: float) -> float:
    """Return a round upper limit for an axis from 0 to ``highest``, or 1 if ``highest`` is not positive and finite."""
    return nice_step(highest * 1.02) if 0 < highest < math.inf else 1.0


def around(low: float, high: float) -> tuple[float, float]:
    """Return limits around the finite ``low`` and ``high``, as multiples of a quarter of ``nice_step(high - low)``."""
    span = high - low
    if span <= 1e-12 * max(abs(low), abs(high)):
        span = max(abs(high) * 0.5, 1e-12) if high else 1.0
    step = nice_step(span) / 4
    return math.floor(low / step) * step, (math.floor(high / step) + 1) * step


def value_axis(values: Numbers, room: float = 1.0, *, log_from: float = math.inf, title: str = "") -> Axis:
    """Return an axis for finite ``values``, ``room`` times as long as the values need.

    Without negative values, the axis begins at 0 or, if the largest value is more than ``log_from`` times the smallest
    positive value, is logarithmic, with a title that ends in "(log axis)".
    """
    if not len(values):
        return Axis(words=title)
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high > 0:
        smallest, top = math.log10(values[values > 0].min()), math.log10(high)
        if top - smallest > math.log10(log_from):  # the ratio itself, such as 1e300 / 1e-300, could overflow
            bottom = max(smallest, top - _DECADES)
            bottom, top = around(bottom, bottom + (top - bottom) * room)
            title = f"{title} (log axis)".lstrip()
            return Axis(10.0 ** max(bottom, -290.0), 10.0 ** min(top, 290.0), log=True, words=title)
    if low >= 0:
        return Axis(0.0, from_zero(high * room), words=title)
    return Axis(*around(low, low + (high - low) * room), words=title)

"""Axis limits that move rarely: they grow in generous steps and shrink only when far too large."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

LADDER = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
LARGEST_DRAWN = 1e300
"""Beyond this, margins and tick steps would overflow a double."""

Numbers = npt.NDArray[np.float64]


def numbers(values: Iterable[float]) -> Numbers:
    """Turn plain numbers into an array in which every finite value is small enough to draw."""
    array = np.array(list(values) if not isinstance(values, np.ndarray) else values, dtype=np.float64)
    finite = np.isfinite(array)
    array[finite] = np.clip(array[finite], -LARGEST_DRAWN, LARGEST_DRAWN)
    return array


def nice_step(value: float) -> float:
    """Round a positive number up to the next rung of 1, 1.5, 2, 3, 4, 5, 6, 8, 10 times a power of ten."""
    if value < 1e-300:
        return 1e-300
    power = 10.0 ** math.floor(math.log10(value))
    return next((power * step for step in LADDER if power * step >= value * (1 - 1e-12)), power * 10)


class Range:
    """The limits of one axis, kept from frame to frame.

    With ``floor=0`` the axis always starts at zero. ``slack`` is how many times too large the range may become before
    it shrinks.
    """

    def __init__(self, floor: float | None = None, slack: float = 6.0) -> None:
        """Start with no limits; the first ``fit`` chooses them."""
        self.floor = floor
        self.slack = slack
        self.limits: tuple[float, float] | None = None

    def fit(self, values: Iterable[float] | Numbers, room: float = 1.0) -> tuple[float, float]:
        """Return limits that hold all finite values; ``room`` times the span is kept free above them."""
        array = numbers(values)
        array = array[np.isfinite(array)]
        if not len(array):
            return self.limits or (0.0 if self.floor is None else self.floor, 1.0)
        low, high = float(array.min()), float(array.max())
        if self.floor is not None and low >= self.floor:
            low = self.floor
        high = low + (high - low) * room
        span = high - low
        if self.limits is not None:
            now_low, now_high = self.limits
            if now_low <= low and high <= now_high and span * self.slack >= now_high - now_low:
                return self.limits
        if span <= 1e-12 * max(abs(low), abs(high)):
            span = max(abs(high) * 0.5, 1e-12) if high else 1.0
        self.limits = self._choose(low, high, span)
        return self.limits

    def _choose(self, low: float, high: float, span: float) -> tuple[float, float]:
        if self.floor is not None and low == self.floor:
            return low, low + nice_step(max(span, high - low) * 1.02)
        step = nice_step(span) / 4
        return math.floor(low / step) * step, (math.floor(high / step) + 1) * step


class AxisScale:
    """Linear or log, decided without flicker: log above ``enter`` times, linear again only below ``leave`` times."""

    def __init__(self, enter: float = 300.0, leave: float = 30.0, decades: float = 12.0) -> None:
        """Start linear."""
        self.enter, self.leave, self.decades = enter, leave, decades
        self.log = False
        self._linear = Range(floor=0.0)
        self._log = Range()

    def fit(self, values: Numbers, room: float = 1.0) -> tuple[float, float]:
        """Choose the scale for these values and return the limits on it, in data units."""
        finite = values[np.isfinite(values)]
        positive = finite[finite > 0]
        if not len(positive) or (finite < 0).any():
            self.log = False
        else:
            # logs, since the ratio of 1e300 to 1e-300 is no float
            spread = math.log10(positive.max()) - math.log10(positive.min())
            self.log = spread > math.log10(self.leave if self.log else self.enter)
        if not self.log:
            return self._linear.fit(finite, room)
        top = math.log10(positive.max())
        bottom = max(math.log10(positive.min()), top - self.decades)
        low, high = self._log.fit([bottom, top], room)
        return 10.0 ** max(low, -305.0), 10.0 ** min(high, 305.0)

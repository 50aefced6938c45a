"""Limits hold the data, are round, and are the same for the same data; ticks lie on round numbers."""

from __future__ import annotations

import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from gradlab.drawing import Axes, Axis, numbers, value_axis
from gradlab.drawing.limits import around, nice_step
from gradlab.drawing.plots import byte_ticks, equal_units, tick_values
from gradlab.formatting import bytes_text

POSITIVE = st.floats(1e-290, 1e290)


@hypothesis.given(POSITIVE)
def test_a_step_is_the_next_rung(value: float) -> None:
    step = nice_step(value)
    assert value * (1 - 1e-9) <= step <= 2.01 * value
    mantissa = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert min(abs(mantissa - rung) for rung in (1, 1.5, 2, 3, 4, 5, 6, 8, 10)) < 1e-6


@hypothesis.given(st.lists(st.floats(-1e250, 1e250), min_size=1, max_size=20), st.floats(1, 1.5))
def test_an_axis_holds_all_values(values: list[float], room: float) -> None:
    axis = value_axis(np.array(values), room, log_from=300)
    assert axis.low < axis.high
    assert max(values) <= axis.high
    if axis.log:
        assert 0 < axis.low <= max(min(v for v in values if v > 0), max(values) * 1e-12, 1e-290)
    else:
        assert axis.low <= min(values) + 1e-12 * (axis.high - axis.low)


def test_a_spread_of_more_than_300_is_logarithmic() -> None:
    assert [value_axis(np.array([1.0, top]), log_from=300).log for top in (100, 299, 301)] == [False, False, True]
    assert not value_axis(np.array([-1.0, 1e6]), log_from=300).log
    assert not value_axis(np.array([1.0, 1e6])).log


@hypothesis.given(st.floats(-1e6, 1e6), st.floats(1e-9, 1e9), st.booleans(), st.sampled_from(["number", "updates"]))
def test_ticks_lie_on_the_axis(low: float, span: float, log: bool, kind: str) -> None:
    axis = (
        Axis(abs(low) + 1e-9, abs(low) + 1e-9 + span, log=True) if log else Axis(*around(low, low + span), ticks=kind)
    )
    ticks = np.array(tick_values(axis, 300.0, 75.0))
    slack = 1e-6 * (axis.high - axis.low)
    assert ((ticks >= axis.low - slack) & (ticks <= axis.high + slack)).all()
    assert len(ticks) <= 9
    assert (np.diff(ticks) > 0).all()


@pytest.mark.parametrize("top", [7, 900, 1023, 1100, 1500, 5e5, 1.02e6, 1.5e6, 3e9, 7e12])
def test_ticks_lie_on_round_bytes(top: float) -> None:
    ticks = byte_ticks(top)
    assert 2 <= len(ticks) <= 7
    assert max(ticks) <= top
    assert all(float(bytes_text(tick).split()[0]) * 2 % 1 == 0 for tick in ticks)


@hypothesis.given(
    st.floats(1e-3, 10), st.floats(1e-3, 10), st.floats(50, 900), st.floats(50, 400), st.sampled_from(["fit", "fill"])
)
def test_a_unit_is_as_long_along_both_axes_and_nothing_is_lost(
    across: float, up: float, wide: float, tall: float, equal: str
) -> None:
    before = Axis(-across, across), Axis(0.0, up)
    x, y, (left, top, right, bottom) = equal_units(Axes(*before, equal), (20.0, 30.0, 20.0 + wide, 30.0 + tall))
    assert (right - left) / (x.high - x.low) == pytest.approx((bottom - top) / (y.high - y.low))
    assert 20 - 1e-6 <= left < right <= 20 + wide + 1e-6
    assert 30 - 1e-6 <= top < bottom <= 30 + tall + 1e-6
    for old, new in zip(before, (x, y), strict=True):
        assert new.low <= old.low + 1e-9 * up
        assert new.high >= old.high * (1 - 1e-9)


def test_numbers_are_small_enough_to_draw() -> None:
    limited = numbers([1, 1e308, -1e308, math.inf, math.nan])
    np.testing.assert_equal(limited, [1, 1e290, -1e290, math.inf, math.nan])
    assert numbers(value for value in (1, 2)).tolist() == [1, 2]

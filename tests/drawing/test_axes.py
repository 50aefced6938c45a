"""Limits hold the data, are round, and are the same for the same data; ticks lie on round numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradlab.drawing import value_limits
from gradlab.drawing.axes import Scale, byte_ticks, nice_step, numbers
from gradlab.formatting import bytes_text


@given(st.floats(1e-290, 1e290))
def test_a_step_is_the_next_rung(value: float) -> None:
    step = nice_step(value)
    assert value <= step * (1 + 1e-9)
    assert step <= 2.01 * value
    mantissa = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert min(abs(mantissa - rung) for rung in (1, 1.5, 2, 3, 4, 5, 6, 8, 10)) < 1e-6


@given(st.lists(st.floats(-1e250, 1e250), min_size=1, max_size=20), st.floats(1, 1.5))
def test_limits_hold_all_values(values: list[float], room: float) -> None:
    low, high, log = value_limits(np.array(values), room)
    assert low < high
    assert max(values) <= high
    if log:
        assert 0 < low <= max(min(v for v in values if v > 0), max(values) * 1e-12, 1e-305)
    else:
        assert low <= min(values) + 1e-12 * (high - low)


def test_far_apart_is_logarithmic() -> None:
    assert [value_limits(np.array([1.0, top]))[2] for top in (100, 299, 301)] == [False, False, True]
    assert not value_limits(np.array([-1.0, 1e6]))[2]


@pytest.mark.parametrize("top", [7, 900, 1023, 1100, 1500, 5e5, 1.02e6, 1.5e6, 3e9, 7e12])
def test_ticks_lie_on_round_bytes(top: float) -> None:
    ticks = byte_ticks(top)
    assert 2 <= len(ticks) <= 7
    assert max(ticks) <= top
    assert all(float(bytes_text(tick).split()[0]) * 2 % 1 == 0 for tick in ticks)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(-1, 2))
def test_a_place_reads_as_its_value_and_lies_within_the_limits(low: float, wide: float, share: float) -> None:
    scale = Scale(low, low + wide, 300.0, 40.0)
    place = scale.at(low + share * wide)
    assert scale.place(np.array([low + share * wide]))[0] == pytest.approx(place)
    inside = low + min(max(share, 0), 1) * wide
    assert scale.axis.value(place) == pytest.approx(inside, abs=1e-6 * wide + 1e-9 * abs(low))
    assert 40 - 1e-6 <= place <= 300 + 1e-6


def test_numbers_are_small_enough_to_draw() -> None:
    got = numbers([1, 1e308, -1e308, math.inf, math.nan])
    np.testing.assert_equal(got, [1, 1e300, -1e300, math.inf, math.nan])
    assert numbers(value for value in (1, 2)).tolist() == [1, 2]

"""Limits hold the data, are round, and are the same for the same data; ticks lie on round numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradlab.drawing import Scale, Side, Text, from_zero, make_axes, value_limits
from gradlab.drawing.axes import around, byte_ticks, nice_step, numbers
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


def test_a_wobble_moves_no_limit() -> None:
    assert len({from_zero(72 + 3 * math.sin(n)) for n in range(100)}) == 1
    assert around(3.0, 3.0)[0] <= 3.0 < around(3.0, 3.0)[1]


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


@pytest.mark.parametrize("size", [(260, 200), (400, 260), (1300, 420)])
def test_both_axes_keep_their_words_and_ticks(size: tuple[int, int]) -> None:
    for low, high in [(-2.0, 2.0), (0.0, 60.0), (-0.05, 0.15)]:
        sides = (Side(low, high, words=f"weight {number}") for number in (1, 2))
        marks = make_axes(size, 54, 30, size[0] - 16, size[1] - 38, *sides).marks
        texts = [mark.text for mark in marks if isinstance(mark, Text)]
        assert {"weight 1", "weight 2"} <= set(texts)
        assert texts.count("0") == 2

"""Every instrument: any turn is answered in pictures and text, and labels do not overlap."""

from __future__ import annotations

import os
import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from page import Page

import gradlab.course as course
from gradlab.drawing import Dots, Drawing, Text, in_rows, to_png
from gradlab.widgets import Instrument

pytestmark = pytest.mark.slow

NAMES = ("swing", "loss_scale", "peak", "ring_of_orders", "two_ranks")
EACH = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.skipif(name == "two_ranks" and os.name != "posix", reason="needs POSIX"))
        for name in NAMES
    ],
)
SIZES = [(260, 200), (900, 420)]


@cache
def make_instrument(name: str) -> Instrument:
    """Return an instrument, cached with its views for all tests."""
    instrument: Instrument = getattr(course, name)()
    return instrument


def random_value(control: dict[str, Any], chance: random.Random) -> object:
    if control["kind"] == "tick":
        return chance.random() < 0.5
    if control["kind"] == "order":
        return " ".join(chance.choices(control["options"], k=chance.randint(1, 6)))
    if "step" in control:
        return round(chance.uniform(control["low"], control["high"]), 3)
    return chance.choice(control["options"])[1]


@EACH
def test_any_turn_is_answered_with_pictures_and_words(name: str) -> None:
    page, chance = Page(make_instrument(name)), random.Random(name)
    assert page.alarm == "", page.alarm
    for _ in range(6):
        control = chance.choice(page.shown["controls"])
        page.turn(control["name"], random_value(control, chance))
        assert page.alarm == "", (make_instrument(name).values, page.alarm)
        assert page.state.strip().endswith((".", "!", "?")), page.state
        assert all(panel.words for panel in make_instrument(name).drawings())


@EACH
def test_nonsense_is_refused_in_words_and_changes_nothing(name: str) -> None:
    make, page = getattr(course, name), Page(make_instrument(name))
    before = dict(make_instrument(name).values)
    with pytest.raises(ValueError, match="there is no control 'colour'; choose from "):
        make(colour=3)
    for control in before:
        with pytest.raises(ValueError, match=rf"{control} must be .*, got"):
            make(**{control: "nonsense"})
        for value in (None, -1e300, []):
            page.turn(control, value)
            assert control in page.alarm, page.alarm
        page.turn(control, before[control])
    assert make_instrument(name).values == before
    assert page.alarm == "", "other tests use the same instrument"


def check_panel(panel: Drawing) -> None:
    """Fail where two marks look the same, a text cannot be read, or a dot lies outside of the axes."""
    ids = {mark.id: mark for mark in panel.marks}
    assert len(ids) == len(panel.marks)
    for mark in panel.marks:
        if isinstance(mark, Text):
            assert 11 <= mark.size <= 14, mark
            assert all(mark.texts), mark
            assert not mark.of or mark.of in ids, mark
        elif isinstance(mark, Dots):
            axes = panel.axes[mark.axes]
            x, y = np.reshape(mark.points, (-1, 2)).T
            assert ((x >= axes.x.low) & (x <= axes.x.high) & (y >= axes.y.low) & (y <= axes.y.high)).all(), mark.id


@EACH
def test_panels_can_be_read_and_painted_whatever_is_turned(name: str) -> None:
    """For instruments whose states are recorded, also in some of these."""
    instrument, chance = make_instrument(name), random.Random(1)
    turns = [
        {control["name"]: random_value(control, chance)}
        for control in chance.choices([control.data for control in instrument.controls()], k=4)
    ]
    for number, settings in enumerate([*turns, *chance.sample([dict(each) for each in instrument.recorded()], 3)]):
        for control, value in settings.items():
            instrument.turn(control, value)
        assert instrument.drawings()
        for panel in instrument.drawings():
            check_panel(panel)
        assert to_png(in_rows(instrument.drawings(), 1, SIZES[number % 2]), 1.0)

"""What holds for every instrument: any turn is answered, labels are apart, and the page without a kernel is small."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from labels_apart import check_labels
from page import Page

import gradlab.course as course
from gradlab.widgets import Instrument

NAMES = ("swing", "loss_scale", "peak", "ring_of_orders", "two_ranks")
MAKERS: list[Callable[[], Instrument]] = [getattr(course, name) for name in NAMES]
EACH = pytest.mark.parametrize("make", MAKERS, ids=NAMES)
SIZES = [(260, 200), (400, 260), (900, 420)]


def random_value(knob: dict, chance: random.Random) -> object:
    if knob["kind"] == "tick":
        return chance.random() < 0.5
    if knob["kind"] == "order":
        return " ".join(chance.choices(knob["options"], k=chance.randint(1, 6)))
    if "step" in knob:
        return round(chance.uniform(knob["low"], knob["high"]), 3)
    return chance.choice(knob["options"])[1]


@pytest.fixture(scope="module")
def instruments() -> dict[str, Instrument]:
    """One of each: what an instrument has worked out once serves all tests."""
    return {}


@EACH
def test_any_turn_is_answered_with_pictures_and_words(
    make: Callable[[], Instrument], instruments: dict[str, Instrument], request: pytest.FixtureRequest
) -> None:
    instrument = instruments.setdefault(make.__name__, make())
    page, chance = Page(instrument), random.Random(make.__name__)
    assert page.alarm == "", page.alarm
    for _ in range(12):
        knob = chance.choice(page.shown["controls"])
        page.turn(knob["name"], random_value(knob, chance))
        assert page.alarm == "", (instrument.values, page.alarm)
        assert page.state.strip().endswith((".", "!", "?")), page.state
        assert all(panel.words for panel in page.panels.values())


@EACH
def test_nonsense_changes_nothing(make: Callable[[], Instrument], instruments: dict[str, Instrument]) -> None:
    instrument = instruments.setdefault(make.__name__, make())
    page = Page(instrument)
    before = dict(instrument.values)
    for name in before:
        for value in (None, -1e300, "nonsense", [], {"a": 1}):
            page.turn(name, value)
            assert name in page.alarm, page.alarm
    assert instrument.values == before


@EACH
def test_no_label_overprints_another(make: Callable[[], Instrument], instruments: dict[str, Instrument]) -> None:
    instrument = instruments.setdefault(make.__name__, make())
    chance = random.Random(1)
    for _ in range(6):
        knob = chance.choice(Page(instrument).shown["controls"])
        instrument.turn(knob["name"], random_value(knob, chance))
        for panel in instrument._now().panels.values():
            for size in SIZES:
                check_labels(panel(*size))


@pytest.mark.slow
@EACH
def test_the_page_without_a_kernel_is_small(
    make: Callable[[], Instrument], instruments: dict[str, Instrument], tmp_path: Path
) -> None:
    page = make().save(tmp_path / "page.html")
    assert page.stat().st_size < 500_000

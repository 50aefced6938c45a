"""Instruments without a browser: controls, views, outputs and errors."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from page import Page

from gradlab.drawing import Drawing, Text
from gradlab.widgets import Control, Instrument, Settings, View


class Adder(Instrument):
    """Adds what its controls say; 13 is an accident."""

    title = "The adder"
    looks = 0

    def controls(self) -> list[Control]:
        return [
            Control.slider("a", "first", 1.0, [0.0, 1.0, 2.0, 4.0], "{:g} units".format, plays=200),
            Control.choice("b", "second", "one", [("eins", "one"), ("dreizehn", "13")]),
            Control.tick("twice", start=False),
            Control.order("calls", "calls", "step backward", ["backward", "step"]),
        ]

    def render(self, settings: Settings) -> View:
        self.looks += 1
        if settings["b"] == "13":
            raise RuntimeError("thirteen")
        total = (settings["a"] + 1) * (2 if settings["twice"] else 1)
        drawing = Drawing("sum", [Text("sum", (str(total),), 0.5, 0.5)], words=f"{total} in all")
        return View({"sum": drawing}, f"The sum is {total}.", code=f"total = {total}\n")

    def recorded(self) -> Iterable[Settings]:
        yield {}  # the start again
        yield from ({"a": a, "twice": twice} for a in (0.0, 2.0) for twice in (False, True))


def test_a_turn_changes_picture_words_and_code() -> None:
    adder = Adder()
    page = Page(adder)
    assert page.shown["state"] == "The sum is 2.0."
    assert page.panels["sum"].texts() == ["sum", "2.0"]
    page.turn("a", 4)  # JSON has no 4.0
    assert (page.shown["state"], page.panels["sum"].texts()) == ("The sum is 5.0.", ["sum", "5.0"])
    assert page.shown["code"]["source"] == "total = 5.0\n"
    page.turn("a", 2.0)
    looks = adder.looks
    page.turn("a", 4.0).turn("a", 2.0)
    assert adder.looks == looks, "what was seen is not worked out again"
    assert page.ask("press", what="batch 3").alarm == "", "only a lab can do it"


@pytest.mark.parametrize(("b", "text"), [("one", "The sum is 2.0."), ("13", "Nothing can be shown here. {}")])
def test_the_text_in_a_saved_notebook_begins_with_the_title(b: str, text: str) -> None:
    adder = Adder(b=b)
    alarm = "RuntimeError: thirteen" if b == "13" else ""
    assert adder.text == text.format(alarm)
    assert adder._repr_mimebundle_()[0]["text/plain"].splitlines() == ["The adder", adder.text]
    assert Page(adder).shown["alarm"] == alarm


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("a", 3.0, "Adder: a must be one of 0.0, 1.0, 2.0, 4.0, got 3.0"),
        ("twice", 1, "Adder: twice must be True or False, got 1"),
        ("calls", "step jump", "calls must be 1 to 8 of backward, step, with spaces between them, got 'step jump'"),
        ("calls", "", "got ''"),
        ("calls", "step " * 9, "1 to 8"),
        ("none", 1, "there is no control 'none'"),
        ("b", "13", "RuntimeError: thirteen"),
    ],
)
def test_a_turn_that_cannot_be_is_told_and_changes_nothing(name: str, value: Any, message: str) -> None:
    adder = Adder()
    page = Page(adder)
    before = dict(adder.values)
    page.turn(name, value)
    assert message in page.shown["alarm"]
    assert adder.values == before
    assert page.shown["state"] == "The sum is 2.0."
    if name in before:
        assert page.frames[-1]["values"] == {name: before[name]}, "the browser gets the current value"
    page.turn("a", 0.0)
    assert page.shown["alarm"] == ""


def test_start_values_are_set_by_name() -> None:
    adder = Adder(a=4, twice=True)
    assert adder.text == "The sum is 10.0."
    for wrong in ({"a": 3.5}, {"c": 1}, {"b": "two"}):
        with pytest.raises(ValueError, match=f"Adder: .*{next(iter(wrong))}"):
            Adder(**wrong)


class Doubler(Instrument):
    """Doubles any number of a range."""

    title = "The doubler"

    def controls(self) -> list[Control]:
        return [Control.number("x", "number", 0.5, -1.2, 2.0, 0.05)]

    def render(self, settings: Settings) -> View:
        return View({}, f"Twice is {2 * settings['x']:g}.")


def test_a_slider_over_all_numbers_takes_any_of_its_range() -> None:
    page = Page(Doubler())
    control = page.control("x")
    assert (control["kind"], control["low"], control["high"], control["step"]) == ("slider", -1.2, 2.0, 0.05)
    assert "options" not in control
    assert page.turn("x", 1.2345).state == "Twice is 2.469."
    assert page.turn("x", 2).state == "Twice is 4."
    for wrong in (2.0001, True, "1"):
        page.turn("x", wrong)
        assert page.alarm == f"Doubler: x must be a number from -1.2 to 2, got {wrong!r}"
        assert page.state == "Twice is 4."
    assert Doubler(x=0.777).text == "Twice is 1.554."
    with pytest.raises(ValueError, match=r"x must be a number from -1\.2 to 2"):
        Doubler(x=3.0)


def test_a_page_holds_what_is_recorded_and_offers_no_more(tmp_path: Path) -> None:
    html = Adder().save(tmp_path / "adder.html").read_text(encoding="utf-8")
    packed = re.search(r'id="recording">([^<]+)<', html)
    assert packed
    recording = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    pairs = [(settings["a"], settings["twice"]) for settings in recording["settings"]]
    assert pairs == [(1.0, False), (0.0, False), (0.0, True), (2.0, False), (2.0, True)], "the start first, each once"
    page = Page(Adder())
    for settings, frame in zip(recording["settings"], recording["frames"], strict=True):
        page.take({"n": page.requests, "frames": [frame]})
        assert page.shown["state"] == f"The sum is {(settings['a'] + 1) * (1 + settings['twice'])}."
        assert page.values == settings
    first = recording["frames"][0]
    assert [value for _, value in first["controls"][0]["options"]] == [0.0, 1.0, 2.0]
    assert [control["name"] for control in first["controls"]] == ["a", "twice"], "no control that cannot be turned"
    assert "<h1>The adder</h1><p>A recording of 5 settings," in html

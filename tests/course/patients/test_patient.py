"""Patient as an instrument: what it shows, what its buttons do, and the page without a kernel."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from gradlab.course import Patient, patient_card
from gradlab.course.patients.case import patient_case
from gradlab.course.patients.patient_drawings import draw_card
from gradlab.course.patients.patient_words import fix_words
from gradlab.doctor.finding import Cause, Finding
from gradlab.drawing import CodeText
from gradlab.formatting import short


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def shown(patient: Patient) -> dict[str, Any]:
    """Return all that a browser shows."""
    (frame,) = patient.handle({"do": "hello", "n": 1, "client": "a"})["frames"]
    return frame


def test_the_sick_loop_is_shown_with_its_line_its_words_and_no_cure() -> None:
    frame = shown(Patient("the-flat-loss"))
    assert frame["values"]["loop"] == "as it came"
    assert 5 <= frame["values"]["update"] <= 15
    assert frame["lit"] == [6, 6]
    assert frame["wrong"] == 6
    assert "The doctor (error, line 6)" in frame["note"]
    assert frame["buttons"] == [["reveal", "Show the cure"]]
    assert frame["editable"]
    assert frame["order"] == ["loss", "norm", "gradient"]
    told = json.dumps(frame)
    assert "moved up" not in told
    assert "may stand before" not in told  # words of the cure
    assert frame["code"]["source"].count("zero_grad") == 1


def test_an_edit_runs_and_is_judged() -> None:
    patient = Patient("the-flat-loss")
    text = patient.outcome().text
    lines = text.splitlines(keepends=True)
    patient.edit("".join([*lines[:3], lines[5], *lines[3:5], lines[6]]))
    assert patient.values["loop"] == "yours"
    assert patient.verdict
    frame = shown(patient)
    assert frame["wrong"] == 0
    assert "Cured: the doctor finds nothing" in frame["note"]
    assert frame["draft"] == ""
    patient.turn("loop", "as it came")
    assert not patient.verdict
    assert shown(patient)["code"]["source"] == text


def test_what_is_no_python_keeps_the_field_open_with_its_line() -> None:
    patient = Patient("the-flat-loss")
    patient.outcome()
    text = "x = 1\nfor y in :\n    pass\n"
    (frame,) = patient.handle({"do": "edit", "text": text, "n": 1, "client": "a"})["frames"]
    assert frame["draft"] == text
    assert frame["wrong"] == 2
    assert "Line 2 is not valid Python" in frame["alarm"]
    assert patient.values["loop"] == "as it came"
    (frame,) = patient.handle({"do": "edit", "text": "x = 1\n", "n": 2, "client": "a"})["frames"]
    assert frame["draft"] == ""


def test_an_interrupt_keeps_the_text_in_its_field() -> None:
    patient = Patient("the-flat-loss")
    patient.outcome()
    text = "raise KeyboardInterrupt\n"
    (frame,) = patient.handle({"do": "edit", "text": text, "n": 1, "client": "a"})["frames"]
    assert (frame["alarm"], frame["draft"], frame["wrong"]) == ("Interrupted.", text, 0)
    assert patient.values["loop"] == "as it came"
    (frame,) = patient.handle({"do": "edit", "text": "x = 1\n", "n": 2, "client": "a"})["frames"]
    assert (frame["alarm"], frame["draft"]) == ("", "")


def test_an_interrupt_ends_the_cell_that_shows_a_loop() -> None:
    runs: list[int] = []
    patient = Patient("runs.append(1)\nraise KeyboardInterrupt\n", runs=runs)
    with pytest.raises(KeyboardInterrupt):
        patient._repr_mimebundle_()
    assert runs == [1]


def test_a_card_can_be_shown_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    card = patient_card("the-flat-loss")
    with monkeypatch.context() as patch:
        patch.setattr(Patient, "_run", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            repr(card)
    assert repr(card).startswith("The flat loss")


def test_an_error_in_the_loop_marks_its_line_and_the_cure_is_shown_on_request() -> None:
    patient = Patient("the-new-head").edit("model = build()\nmodell.train()\n")
    frame = shown(patient)
    assert frame["wrong"] == 2
    assert "line 2 with NameError" in frame["note"]
    frame = shown(patient.reveal())
    assert frame["values"]["loop"] == "cured"
    assert "Make the optimizer when the model has all its parts" in frame["note"]
    assert patient.verdict


def test_the_fixes_of_an_own_loop_are_shown_on_request() -> None:
    text = """w = torch.nn.Parameter(torch.zeros(2))
optimizer = torch.optim.SGD([w], lr=0.1)
for _ in range(10):
    (w - 1).square().sum().backward()
    optimizer.step()
"""
    patient = Patient(text)
    assert "optimizer.zero_grad()" not in json.dumps(shown(patient))
    (frame,) = patient.handle({"do": "reveal"})["frames"]
    assert "line 4: optimizer.zero_grad()" in frame["alarm"].lower()  # the line to edit; the step of line 5 shows it
    w, parts = 0.0, []  # of a quadratic the shares can be worked out by hand
    for _ in range(5):
        parts.append(2 * (w - 1))
        w -= 0.1 * sum(parts)
    patient.turn("update", 5)
    stale = sum(parts[:-1]) / sum(parts)
    assert f"{stale:.0%} of it is from batches that a step had applied already" in patient.text


def test_words_and_pictures_show_the_same_numbers() -> None:
    patient = Patient("the-swinging-loss")
    rows = patient.outcome().history.rows
    assert f"from {short(rows[0].loss)} to {short(rows[-1].loss)}" in patient.text
    loss, norm, _ = patient.drawings()
    assert short(rows[-1].loss) in " ".join(loss.texts())
    assert short(rows[-1].norm) in " ".join(norm.texts())
    patient.turn("update", 17)
    assert "batches 1 to 17" in patient.text
    assert "17" in patient.drawings()[2].words
    here = patient.drawings()[0].find("here")
    assert here.drag.x.value(here.points[0]) == pytest.approx(17, abs=0.1)
    patient.handle({"do": "drag", "name": "update", "x": 40.4, "y": 0.0})  # it turns the slider
    values = patient._controls["update"].values
    assert patient.values["update"] == min(values, key=lambda value: abs(value - 40.4))


HEALTHY = "three-mistakes"
LOOP = "for x, y in batches:\n    loss = loss_fn(model(x), y)\n    loss.backward()\n    optimizer.step()"


@pytest.mark.parametrize(
    ("insert", "marked", "told"),
    [
        ("", "edit here", "Line 3: fix()"),
        ("above", "insert above", "Insert above line 3: fix()"),
        ("below", "insert below", "Insert below line 3: fix()"),
    ],
)
def test_a_missing_line_is_told_apart_from_words_to_change(insert: str, marked: str, told: str) -> None:
    cause = Cause("<loop 1>", 3, insert=insert)
    finding = Finding("x", "error", "It is.", "seen", "<loop 1>", 4, "fix()", "", cause, fix_is_line=True)
    card = draw_card(LOOP, 3, [finding], [], 430)
    assert marked in card.texts()
    code = card.find("fix 0 0")
    assert isinstance(code, CodeText)
    assert code.text == "fix()"
    assert fix_words(finding) == told
    elsewhere = dataclasses.replace(finding, cause=dataclasses.replace(cause, file="other.py"))
    assert fix_words(elsewhere) == "Line 4: fix()"  # the place is not in this loop


def test_a_fix_in_words_is_not_drawn_as_code() -> None:
    words = "Take one of the two step() calls out, so that each batch is applied once, and leave the other as it is."
    finding = Finding("x", "error", "It is.", "seen", "<loop 1>", 4, words, "")
    marks = [mark for mark in draw_card(LOOP, 4, [finding], [], 300).marks if mark.id.startswith("fix 0 ")]
    assert not any(isinstance(mark, CodeText) for mark in marks)
    assert " ".join(mark.text for mark in marks) == words


ARROWS = {"the-swinging-loss": 1, "four-times-the-work": 2}
"""Panels of arrows in a still: where something is stale, and where the cured loop holds more batches."""


@pytest.mark.parametrize("name", [HEALTHY, *ARROWS, "killed-at-night"])
def test_the_still_holds_the_card_and_both_curves_and_says_what_the_live_view_says(name: str) -> None:
    patient = Patient(name)
    view = patient._now()
    panels, _, card = patient._still(view)
    card, *panels = [card, *panels] if card else panels
    if name == HEALTHY:
        assert "The doctor finds nothing." in card.texts()
    else:
        finding = patient.outcome().wrong[0]
        written = " ".join(card.texts())
        assert (f"insert {finding.cause.insert}" if finding.cause.insert else "edit here") in card.texts()
        assert card.find(f"line {view.wrong}").fill.startswith("wrong")
        assert all(word in written for word in ("Fix:", *finding.fix.split()))
    loss = next(panel for panel in panels if panel.title == "loss")
    curves = {mark.id: mark for mark in loss.marks if mark.id.startswith("curve")}
    assert set(curves) == {"curve as it came", *(["curve cured"] if name != HEALTHY else [])}
    solid = curves["curve cured" if name != HEALTHY else "curve as it came"]
    assert (solid.stroke, solid.dash) == ("loss", "")
    assert sum("gradient in .grad" in panel.title for panel in panels) == ARROWS.get(name, 0)
    live = shown(patient)
    assert live["wrong"] == view.wrong
    assert live["state"].split(". ")[0] in patient.words
    for finding in patient.outcome().findings:
        seen = f"Seen: {finding.evidence}.".replace("`", "")
        assert seen in live["note"]
        assert seen in patient.words


def test_a_cure_of_your_own_has_its_verdict_in_the_still() -> None:
    patient = Patient("the-flat-loss")
    patient.edit(patient_case("the-flat-loss").cured)
    assert "Cured: the doctor finds nothing" in patient.words
    assert {"curve as it came", "curve yours"} <= {mark.id for mark in patient._still(patient._now())[0][0].marks}


def test_a_card_is_the_still_without_controls() -> None:
    card = patient_card("killed-at-night")
    data, about = card._repr_mimebundle_()
    assert set(data) == {"image/png", "text/plain"}
    assert "total += loss.detach()" in about["image/png"]["alt"]
    assert repr(card).splitlines()[0] == "Killed at night: a patient"
    assert repr(card).endswith(about["image/png"]["alt"])
    assert card._repr_mimebundle_() == (data, about)
    with pytest.raises(ValueError, match="there is none called"):
        patient_card("the-flat")


def test_a_page_without_a_kernel_holds_the_sick_and_the_cured_run(tmp_path: Path) -> None:
    path = Patient("the-second-update").save(tmp_path / "patient.html")
    assert path.stat().st_size < 500_000
    packed = re.search(r'id="recording">([^<]+)<', path.read_text(encoding="utf-8"))[1]
    recording = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert {at["loop"] for at in recording["settings"]} == {"as it came", "cured"}
    assert all("buttons" not in frame and "editable" not in frame for frame in recording["frames"])


def test_requests_that_make_no_sense_are_answered_in_words() -> None:
    patient = Patient("the-flat-loss")
    for request in ({"do": "edit"}, {"do": "edit", "text": 3}, {"do": "turn", "name": "loop", "value": 9}, {"do": "x"}):
        (frame,) = patient.handle({**request, "n": 1, "client": "a"})["frames"]
        assert "Traceback" not in json.dumps(frame)

"""Each patient: the cured loop passes, the sick one and the typical wrong cures do not, and are told why."""

from __future__ import annotations

import math
from functools import cache

import pytest
import torch

from gradlab.course.patients.case import patient_case, patient_names
from gradlab.course.patients.cures import CureVerdict, judge
from gradlab.course.patients.run_loop import LoopOutcome, run_loop
from gradlab.doctor import watch

from .wrong_cures import RIGHT, WRONG, edited

HEALTHY = "three-mistakes"


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@cache
def run(name: str, text: str) -> LoopOutcome:
    case = patient_case(name)
    return run_loop(case.loop(text))


def verdict(name: str, text: str) -> CureVerdict:
    case = patient_case(name)
    return judge(case, run(name, text), run(name, case.cured))


def test_there_is_a_patient_for_each_loop_of_the_notebook_and_the_first_visit() -> None:
    assert len(patient_names()) == 9
    assert set(WRONG) == set(patient_names())
    assert all(len(wrong) >= 2 for wrong in WRONG.values())


@pytest.mark.parametrize("name", patient_names())
def test_the_cure_cures_with_room_to_spare_and_the_sick_loop_is_told_in_which_lines_it_is_sick(name: str) -> None:
    case = patient_case(name)
    cured = verdict(name, case.cured)
    assert cured, cured.words
    assert cured.loss < 0.95 * case.definition.bound
    found, outcome = verdict(name, case.sick), run(name, case.sick)
    assert bool(found) == (name == HEALTHY)
    assert bool(found.reasons) == bool(outcome.wrong) == (name != HEALTHY)
    for finding in outcome.wrong:
        assert finding.file.startswith("<loop")
        assert 1 <= finding.line <= len(outcome.text.splitlines())


@pytest.mark.parametrize(("name", "wrong"), [(name, wrong) for name in WRONG for wrong in WRONG[name]])
def test_a_wrong_cure_is_told_why(name: str, wrong: str) -> None:
    words, *edits = WRONG[name][wrong]
    found = verdict(name, edited(patient_case(name).sick, edits))
    assert not found
    assert words in found.words


@pytest.mark.parametrize(("name", "edit"), [(name, edit) for name in RIGHT for edit in RIGHT[name]])
def test_another_right_cure_passes(name: str, edit: str) -> None:
    found = verdict(name, edited(patient_case(name).sick, [edit]))
    assert found, found.words


@pytest.mark.parametrize("name", ["the-second-update", "flat-in-half-precision", "learned-by-heart"])
def test_the_instruments_change_no_bit(name: str) -> None:
    case = patient_case(name)
    names = dict(case.loop(case.cured).names)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        exec(case.cured, names)
    plain, seen = (
        torch.cat([p.detach().flatten() for p in found["model"].parameters()])
        for found in (names, run(name, case.cured).names)
    )
    assert torch.equal(plain, seen)


@pytest.mark.parametrize("name", ["four-times-the-work", "flat-in-half-precision"])
def test_losses_and_norms_are_those_of_a_plain_loop(name: str) -> None:
    case = patient_case(name)
    lines = []
    for text in case.sick.splitlines():
        indent = " " * (len(text) - len(text.lstrip()))
        calls = {"backward(": "note_loss(loss)", "step(": "note_norm(model)"}
        lines += [indent + call for word, call in calls.items() if word in text]
        lines.append(text)
    losses, norms, waiting = [], [], []

    def note_loss(loss: torch.Tensor) -> None:
        waiting.append(loss.item())

    def note_norm(model: torch.nn.Module) -> None:
        scale = float(names["scaler"].get_scale()) if "scaler" in names else 1.0
        losses.append(sum(waiting))
        norms.append(math.hypot(*(float(p.grad.norm()) for p in model.parameters())) / scale)
        waiting.clear()

    names = {**case.loop(case.sick).names, "note_loss": note_loss, "note_norm": note_norm}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        exec("\n".join(lines), names)
    rows = run(name, case.sick).history.rows
    assert [row.loss for row in rows] == pytest.approx(losses)
    assert [row.norm for row in rows] == pytest.approx(norms, rel=1e-3)


def test_the_doctor_is_not_needed_for_the_verdict_of_what_it_does_not_see() -> None:
    # A cured loop that only runs half of the batches: the doctor is content, the check is not.
    case = patient_case("the-flat-loss")
    text = case.cured.replace("batches * 4", "batches * 2")
    with watch() as report:
        exec(text, dict(case.loop(text).names))
    assert not report.wrong
    assert "48 updates; the loop is meant to make 96" in verdict("the-flat-loss", text).words

"""The lesson of a finding: notebook and section while the project has no address, and a link once it has."""

from __future__ import annotations

import dataclasses
import html
import json
from pathlib import Path

import pytest

from gradlab import formatting
from gradlab.doctor.finding import Cause, Code, Finding, Report
from gradlab.doctor.reports import format_report
from gradlab.doctor.source.syntax import edited

SCHOOL = "https://github.com/YOU/grad-course"
CODE = Code("graph-broken", "04_zero_grad", "Whose parameters?")
NAMED = 'notebook 04_zero_grad, section "Whose parameters?"'
ADDRESS = f"{SCHOOL}/blob/main/notebooks/04_zero_grad.ipynb#Whose-parameters%3F"


@pytest.fixture(params=["empty", "filled"])
def filled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    filled = request.param == "filled"
    monkeypatch.setattr(formatting, "REPOSITORY", SCHOOL if filled else "")
    return filled


def report() -> Report:
    finding = Finding(CODE.name, "error", "What happens", "what was seen", "train.py", 3, "the fix", CODE.lesson)
    return Report([finding], "1 update of SGD")


def test_a_lesson_is_told_in_every_form(filled: bool) -> None:
    wanted = ADDRESS if filled else NAMED
    assert report().text.splitlines()[-1] == f"  more: {wanted}"
    card = report()._repr_html_()
    assert card.count("href=") == filled
    assert (f'More: <a href="{ADDRESS}">' if filled else f"More: {html.escape(NAMED)}") in card
    assert json.loads(format_report(report(), "json"))["findings"][0]["lesson"] == wanted
    assert format_report(report(), "github").endswith(f"%0ALesson: {wanted.replace('%', '%25')}")


LOOP = "for x in batches:\n    train(x)\n    step()"
"""A loop without a newline at its end."""


@pytest.mark.parametrize(
    ("cause", "line", "expected", "verb"),
    [
        (
            Cause("", 2, insert="above"),
            "clear()",
            "for x in batches:\n    clear()\n    train(x)\n    step()",
            "Insert above",
        ),
        (Cause("", 3, insert="below"), "clear()", LOOP + "\n    clear()", "Insert below"),
        (
            Cause("", 1, insert="below"),
            "clear()",
            "for x in batches:\n    clear()\n    train(x)\n    step()",
            "Insert below",
        ),
        (Cause("", 2, 4, 9), "train(x.T)", LOOP.replace("train(x)", "train(x.T)"), "Edit"),
    ],
)
def test_a_fix_of_one_line_is_told_with_its_place(
    cause: Cause, line: str, expected: str, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(LOOP)
    (finding,) = report().findings
    cause = dataclasses.replace(cause, file="train.py")
    changed = Report([dataclasses.replace(finding, cause=cause, fix=line, fix_is_line=True)], "1 update of SGD")
    assert f"%0A{verb}: train.py:{cause.line}%0AFix: {line}%0A" in format_report(changed, "github")
    assert f"<div>Fix: <code>{line}</code></div>" in changed._repr_html_()
    assert json.loads(format_report(changed, "json"))["findings"][0]["cause"]["insert"] == cause.insert
    assert edited(cause, line) == expected + "\n"


def test_a_line_of_an_excerpt_that_ends_with_a_colon_is_shown() -> None:
    (finding,) = report().findings
    changed = Report([dataclasses.replace(finding, excerpt="a.py:\n3 | for x in batches:", fix="")])
    assert [line.strip() for line in changed.text.splitlines()[4:6]] == ["a.py:", "3 | for x in batches:"]
    assert "fix:" not in changed.text

"""Where a finding is explained: by notebook and section as long as the project has no address, and by address then."""

from __future__ import annotations

import dataclasses
import json
from html.parser import HTMLParser

import pytest

from gradlab import formatting
from gradlab.course.cheat_sheet import cheat_sheet
from gradlab.doctor.finding import Cause, Code, Finding, Report
from gradlab.doctor.reports import format_report
from gradlab.formatting import lesson_address

SCHOOL = "https://github.com/YOU/grad-course"
CODE = Code("graph-broken", "04_zero_grad", "Whose parameters?")
NAMED = 'notebook 04_zero_grad, section "Whose parameters?"'
ADDRESS = f"{SCHOOL}/blob/v1/notebooks/04_zero_grad.ipynb#Whose-parameters%3F"


@pytest.fixture(params=["empty", "filled"])
def filled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    filled = request.param == "filled"
    monkeypatch.setattr(formatting, "REPOSITORY", SCHOOL if filled else "")
    monkeypatch.setattr(formatting, "TAG", "v1" if filled else "")
    return filled


def report() -> Report:
    finding = Finding(CODE.name, "error", "What happens", "what was seen", "train.py", 3, "the fix", CODE.lesson)
    return Report([finding], "1 update of SGD")


class Links(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.words = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.words += data


def test_a_lesson_is_told_in_text_and_html(filled: bool) -> None:
    wanted = ADDRESS if filled else NAMED
    assert report().text.splitlines()[-1] == f"  more: {wanted}"
    card = Links(report()._repr_html_())
    assert card.found == ([ADDRESS] if filled else [])
    assert f"More: {wanted}" in card.words


def test_a_code_without_a_section_has_its_notebook(filled: bool) -> None:
    plain = f"{SCHOOL}/blob/v1/notebooks/10_loop_doctor.ipynb" if filled else "notebook 10_loop_doctor"
    assert Code("backward-twice").lesson == plain


def test_a_lesson_is_told_to_other_tools(filled: bool) -> None:
    wanted = ADDRESS if filled else NAMED
    assert json.loads(format_report(report(), "json"))["findings"][0]["lesson"] == wanted
    assert format_report(report(), "github").endswith(f"%0ALesson: {wanted.replace('%', '%25')}")
    driver = json.loads(format_report(report(), "sarif"))["runs"][0]["tool"]["driver"]
    (rule,) = driver["rules"]
    # SARIF 2.1.0: both are URIs, so words must not stand there; help is a message.
    assert driver.get("informationUri") == (SCHOOL if filled else None)
    assert rule.get("helpUri") == (ADDRESS if filled else None)
    assert rule["help"] == {"text": f"Lesson: {wanted}"}


def test_the_place_to_edit_is_told_as_sarif_counts_from_one() -> None:
    """Columns of ``re`` and ``ast`` count from 0, those of SARIF 2.1.0 from 1; the end is the one after the last."""
    (finding,) = report().findings
    here = dataclasses.replace(finding, cause=Cause(finding.file, 3, 4, 9))
    told = json.loads(format_report(Report([here], "1 update of SGD"), "sarif"))
    (related,) = told["runs"][0]["results"][0]["relatedLocations"]
    assert related["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 5, "endColumn": 10}


def test_the_cheat_sheet_has_links_only_where_they_lead_somewhere(filled: bool) -> None:
    sheet = cheat_sheet()
    addresses = [lesson_address(row.lesson, row.section) for row in sheet.pitfalls]
    assert not filled or all(address.startswith(f"{SCHOOL}/blob/v1/notebooks/") for address in addresses)
    assert Links(sheet.html).found == (addresses if filled else [])

"""``gradlab worksheet``: it says what the notebooks say, asks and does not answer, and prints on two pages each."""

from __future__ import annotations

import html
import json
import os
import re
from pathlib import Path

import pytest
from browser.driving import chromium
from playwright.sync_api import sync_playwright
from refresh_worksheets import ROOT, WORKSHEETS, read_off

from gradlab.__main__ import main
from gradlab.course import Worksheet
from gradlab.course.handouts import worksheet_text
from gradlab.widgets import find_question

NUMBERS = [f"{number:02}" for number in range(14)]


def words_of(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<style.*?</style>|<[^>]+>", " ", page, flags=re.S)).replace("`", "").split())


def letters(text: str) -> str:
    """A text without spaces and the marks of code."""
    return re.sub(r"[\s`]", "", text)


def test_there_is_one_for_each_notebook() -> None:
    assert sorted(path.stem for path in WORKSHEETS.glob("*")) == NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_it_says_what_the_notebook_says(number: str) -> None:
    """python tests/refresh_worksheets.py writes it."""
    text = worksheet_text(number)
    read = read_off(next((ROOT / "notebooks").glob(f"{number}_*.ipynb")))
    assert {"title": text.title, "can": list(text.can), "bets": list(text.bets)} == read
    assert len(text.bets) >= 2


@pytest.mark.parametrize("number", NUMBERS)
def test_it_asks_everything_and_answers_nothing(number: str) -> None:
    markdown, page = Worksheet([number]).markdown(), letters(words_of(Worksheet([number]).page()))
    text = worksheet_text(number)
    boxes = 0
    for question in map(find_question, text.bets):
        boxes += len(question.options)
        assert question.text in markdown
        assert letters(question.text) in page
        assert all(f"- [ ] {option.text}\n" in markdown for option in question.options)
        assert letters(question.why) not in page
        assert not any(option.remark and letters(option.remark) in page for option in question.options)
    for it in text.ticket:
        boxes += len(it.options)
        assert f"**{text.ticket.index(it) + 1}. {it.question}**\n" in markdown
        assert letters(it.say) not in page
        assert it.options or letters(it.wrong) not in page or len(it.wrong) < 40
    assert markdown.count("- [ ] ") == boxes
    assert markdown.count("because ___") == len(text.bets)
    assert "\u2713" not in markdown


@pytest.mark.parametrize("number", NUMBERS)
def test_what_a_bet_needs_stands_before_it(number: str) -> None:
    """Its code is that of the notebook."""
    markdown, text = Worksheet([number]).markdown(), worksheet_text(number)
    notebook = next((ROOT / "notebooks").glob(f"{number}_*.ipynb")).read_text(encoding="utf-8")
    cells = ["".join(cell["source"]) for cell in json.loads(notebook)["cells"]]
    for name, given in text.given.items():
        code = f"```python\n{given.code}```\n\n" if given.code else ""
        assert f"{text.bets.index(name) + 1}. {given.says}\n\n{code}**{find_question(name).text}**\n" in markdown
        assert any(given.code in cell for cell in cells)


def test_no_exit_question_stands_twice() -> None:
    asked = [it.question for number in NUMBERS for it in worksheet_text(number).ticket]
    said = [it.say for number in NUMBERS for it in worksheet_text(number).ticket]
    assert len(set(asked)) == len(set(said)) == len(asked) == 70


def test_the_right_answer_is_not_always_in_the_same_place() -> None:
    places = [it.options.index(it.answer) for n in NUMBERS for it in worksheet_text(n).ticket if it.options]
    assert all(places.count(place) < 0.6 * len(places) for place in (0, 1, 2))


def test_the_command_prints_or_writes_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["worksheet", "13", "03"]) == 0
    printed = capfd.readouterr().out
    assert re.findall(r"^## (?:Exit ticket )?(\d\d)", printed, re.M) == ["03", "03", "13", "13"]
    for name in ("sheets.md", "sheets.html"):
        assert main(["worksheet", "-o", str(tmp_path / name)]) == 0
        assert capfd.readouterr().out == f"{tmp_path / name}: the worksheets, to print\n"
    assert (tmp_path / "sheets.md").read_text(encoding="utf-8") == Worksheet().markdown()
    assert not re.search(r"https?:|src=|<script", (tmp_path / "sheets.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["worksheet", "14"], "a notebook is one of 00, 01, "),
        (["worksheet", "-o", "sheet.pdf"], "the file must end in .md or .html, got 'sheet.pdf'"),
    ],
)
def test_bad_input_is_one_line(capfd: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main(arguments) == 2
    errors = capfd.readouterr().err
    assert said in errors
    assert errors.count("\n") == 1


@pytest.mark.browser
@pytest.mark.skipif(
    chromium() is None and not os.environ.get("GRADLAB_REQUIRE_BROWSER"),
    reason="needs Chromium (Debian: apt-get install chromium)",
)
def test_each_prints_on_two_pages(tmp_path: Path) -> None:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.set_content(Worksheet().page())  # each begins a page
        for paper in ("A4", "Letter"):
            printed = page.pdf(format=paper)
            assert len(re.findall(rb"/Type\s*/Page\b(?!s)", printed)) == 2 * len(NUMBERS), paper
        browser.close()

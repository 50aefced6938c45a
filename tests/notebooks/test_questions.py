"""The questions of the series: complete, each asked in one place, and never answered where they are asked."""

from __future__ import annotations

import base64
import html
import json
import re
import runpy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from browser.bets import following, questions, stored
from nbconvert import HTMLExporter

from gradlab import Recipe
from gradlab.formatting import inline_html
from gradlab.widgets.question import Question, find_question, question_names

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
EACH = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
HOME = "home/zero-grad-taken-out"  # the first page of the site asks it, above a recording of what happens
ASKED = re.compile(r'\bpredict\(\s*"([^"]+)"\s*\)')


def questions_of(path: Path) -> list[Question]:
    return [find_question(name) for name in question_names() if name.startswith(path.stem[:2])]


def sources(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def plain(text: str) -> str:
    """A text without tags, entities, escapes and the marks of code, so that it is found however it was written."""
    text = html.unescape(re.sub(r"<[^>]+>", "", text)).replace('\\"', '"').replace("\\n", " ")
    return re.sub(r"[`\s]+", " ", text)


def answers_in(text: str, questions: list[Question]) -> list[str]:
    """The reasons and remarks that stand in a text, in clear or as base64 of it."""
    seen = plain(text)
    found = []
    for question in questions:
        for secret in (question.why, *(option.remark for option in question.options if option.remark)):
            packed = [base64.b64encode(each.encode())[:24].decode() for each in (secret, inline_html(secret))]
            if plain(secret).strip() in seen or any(each in text for each in packed):
                found.append(secret)
    return found


def test_each_question_is_asked_in_one_cell() -> None:
    asked = Counter(name for path in NOTEBOOKS for source in sources(path) for name in ASKED.findall(source))
    assert asked + Counter([HOME]) == Counter(question_names())
    numbers = [name[:2] for name in question_names() if name != HOME]
    assert list(dict.fromkeys(numbers)) == [path.stem[:2] for path in NOTEBOOKS]
    for path in NOTEBOOKS:
        for source in sources(path):
            one = re.fullmatch(r'predict\("[^"]+"\)|(\w+) = predict\("[^"]+"\)\n\1', source)
            assert one or "predict(" not in source, "a cell that asks does nothing else"
            assert all(name.startswith(f"{path.stem[:2]}/") for name in ASKED.findall(source))


def test_questions_are_complete_and_their_words_are_their_own() -> None:
    remarks: list[str] = []
    for name in question_names():
        question = find_question(name)  # which fails unless one answer is right
        assert 2 <= len(question.options) <= 6
        assert all([question.text.strip(), *(option.text.strip() for option in question.options)])
        assert len({option.text for option in question.options}) == len(question.options)
        assert re.fullmatch(r"(\d\d|home)/[a-z0-9]+(-[a-z0-9]+){0,5}", name)
        own = [option.remark for place, option in enumerate(question.options) if place != question.answer]
        for text in (question.why, *own):
            assert len(text.split()) >= 6, text
            assert re.search(r"[.!?)]$", text), text
            assert text.count("`") % 2 == 0, text
        remarks += own
    assert [remark for remark, times in Counter(remarks).items() if times > 1] == []


@EACH
def test_no_notebook_holds_an_answer_in_clear(path: Path) -> None:
    assert answers_in(path.read_text(encoding="utf-8"), questions_of(path)) == []
    assert not any("answer=" in source for source in sources(path) if "predict(" in source)


@EACH
def test_no_page_made_of_a_notebook_holds_an_answer_in_clear(path: Path) -> None:
    """The outputs are those that running the notebook would store now."""
    notebook = stored(path)
    for cell in notebook.cells:
        if cell.cell_type == "code" and not ASKED.search(cell.source):
            cell.outputs = []  # long, and looked through above
    assert answers_in(nbformat.writes(notebook), questions_of(path)) == []
    if path in NOTEBOOKS[3:5]:  # all others are made in the same way
        page, _ = HTMLExporter().from_notebook_node(notebook)
        assert all(inline_html(question.text) in page for question in questions_of(path))
        assert answers_in(page, questions_of(path)) == []


def test_an_answer_in_clear_is_found() -> None:
    question = find_question("03/where-do-the-weights-go")
    for text in (question.why, inline_html(question.why), json.dumps(inline_html(question.why))):
        assert answers_in(f"x {text} y", [question]) == [question.why]
    assert answers_in(base64.b64encode(question.why.encode()).decode(), [question]) == [question.why]


def words_of(text: str) -> str:
    """The words and numbers of a text, so that a run of them is found however it was written."""
    return " ".join(["", *re.findall(r"\w+(?:[.,]\d+)*", text.lower()), ""])


def runs_of(text: str) -> set[str]:
    """All runs of four words in a text; a shorter text, of two words at least, is one run."""
    words = words_of(text).split()
    size = min(4, len(words))
    return {f" {' '.join(words[at : at + size])} " for at in range(len(words) - size + 1)} if size > 1 else set()


def told_above(cells: list[Any]) -> Iterator[tuple[Question, str]]:
    """Each question with all that a reader has seen above it in its section: texts, code and outputs."""
    above = ""
    for cell in cells:
        *_, below = re.split(r"^(?=#{1,3} )", cell.source, flags=re.MULTILINE)
        if cell.cell_type == "markdown" and below.startswith("#"):
            above = below
            continue
        if cell.cell_type == "code" and (asked := ASKED.search(cell.source)):
            yield find_question(asked[1]), above
            continue
        outputs = [
            output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", [])
        ]
        above = "\n".join([above, cell.source, *outputs])


@EACH
def test_nothing_above_a_question_tells_its_right_option(path: Path) -> None:
    for question, above in told_above(nbformat.read(path, as_version=4).cells):
        right = question.options[question.answer]
        others = words_of(
            " . ".join([question.text, *(option.text for option in question.options if option is not right)])
        )
        seen = words_of(above)
        told = [run for run in runs_of(right.text) if run in seen and run not in others]
        assert told == [], question.name


def test_the_place_of_a_right_option_tells_nothing() -> None:
    """Over the series and over the notebooks of its first half, each place is right about as often."""
    for notebooks in (NOTEBOOKS, NOTEBOOKS[:7]):
        asked = [question for path in notebooks for question in questions_of(path)]
        for size, least, most in ((3, 0.25, 0.45), (4, 0.2, 0.4)):
            right = Counter(question.answer for question in asked if len(question.options) == size)
            shares = [right[place] / right.total() for place in range(size)]
            assert all(least <= share <= most for share in shares), (size, shares)


@EACH
def test_all_that_follows_a_question_is_folded(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    before = [cell.metadata.get("jupyter", {}) for cell in notebook.cells]
    runpy.run_path(str(ROOT / "tests" / "refresh_notebooks.py"))["fold_outcomes"](notebook)
    after = [cell.metadata.get("jupyter", {}) for cell in notebook.cells]
    assert before == after


def follows_bets(path: Path) -> Iterator[tuple[Any, bool]]:
    """Each cell that follows a question up to the next heading, and whether an output stands above it or none below."""
    cells = nbformat.read(path, as_version=4).cells
    inside, last = following(cells)
    for at in sorted(inside | last):
        asked = max(place for place in questions(cells) if place < at)
        end = next((place for place in range(at, len(cells)) if place in last or place not in inside), len(cells))
        outputs = [place for place in range(asked + 1, end) if cells[place].get("outputs")]
        yield cells[at], not outputs or outputs[0] < at


@EACH
def test_nothing_that_follows_a_bet_is_open_before_it(path: Path) -> None:
    """JupyterLab shows the first text of the first output that is folded; texts that tell are folded in themselves."""
    folded = 0
    for cell, tells in follows_bets(path):
        above = re.split(r"^(?=#{1,3} )", cell.source, flags=re.MULTILINE)[0].strip()
        if cell.cell_type == "code":
            assert cell.metadata["jupyter"]["source_hidden"] is True, f"code in sight: {cell.source[:80]}"
        if cell.cell_type == "code" and cell.outputs:
            assert cell.metadata["jupyter"]["outputs_hidden"] is True
            assert cell.outputs[0].get("data") == {}, f"told above its fold: {cell.outputs[0]}"
            folded += 1
        elif cell.cell_type == "markdown" and above and tells:
            assert re.fullmatch(r"<details class=.after-bet.>.*</details>", above, re.DOTALL), f"told: {above[:80]}"
            assert above.count("<details") == above.count("</details>") == 1 + above.count("<details>")
            folded += 1
    assert folded >= len(questions_of(path)) - 1


def test_the_loss_that_a_bet_is_about_is_in_the_lab_below() -> None:
    """Its switch is written as the panel of the loss names it."""
    names = [name for name in question_names() if find_question(name).loss]
    assert HOME in names
    for name in names:
        question = find_question(name)
        assert question.loss.decided <= question.loss.over
        assert all(option.course and option.course[0] == 1 for option in question.options)
        if isinstance(question.loss.after, str):
            switch, value = question.loss.after.split()
            before = Recipe(optimizer="sgd", accumulate=4, amp="off", zero_grad=value != "on")
            turned = before.replace(**{switch: {"off": False, "on": True}.get(value, value)})
            assert turned.changes_from(before) == [question.loss.after]

"""The questions of the series: complete, each asked in one cell, with no answer visible before the choice."""

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
HOME = "home/zero-grad-taken-out"  # on the first page of the site, above a recording
PREDICT_CALL = re.compile(r'\bpredict\(\s*"([^"]+)"\s*\)')


def questions_of(path: Path) -> list[Question]:
    return [find_question(name) for name in question_names() if name.startswith(path.stem[:2])]


def sources(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def plain(text: str) -> str:
    """Return a text without tags, entities, escapes and backticks, for comparison."""
    text = html.unescape(re.sub(r"<[^>]+>", "", text)).replace('\\"', '"').replace("\\n", " ")
    return re.sub(r"[`\s]+", " ", text)


def answers_in(text: str, questions: list[Question]) -> list[str]:
    """Return the reasons and remarks in a text, in plain text or as base64."""
    visible = plain(text)
    answers = []
    for question in questions:
        for secret in (question.why, *(option.remark for option in question.options if option.remark)):
            encoded = [base64.b64encode(each.encode())[:24].decode() for each in (secret, inline_html(secret))]
            if plain(secret).strip() in visible or any(each in text for each in encoded):
                answers.append(secret)
    return answers


def test_each_question_is_asked_in_one_cell() -> None:
    counts = Counter(name for path in NOTEBOOKS for source in sources(path) for name in PREDICT_CALL.findall(source))
    assert counts + Counter([HOME]) == Counter(question_names())
    numbers = [name[:2] for name in question_names() if name != HOME]
    assert list(dict.fromkeys(numbers)) == [path.stem[:2] for path in NOTEBOOKS]
    for path in NOTEBOOKS:
        for source in sources(path):
            match = re.fullmatch(r'predict\("[^"]+"\)|(\w+) = predict\("[^"]+"\)\n\1', source)
            assert match or "predict(" not in source, "a cell that asks does nothing else"
            assert all(name.startswith(f"{path.stem[:2]}/") for name in PREDICT_CALL.findall(source))


def test_questions_are_complete_and_their_remarks_differ() -> None:
    remarks: list[str] = []
    for name in question_names():
        question = find_question(name)  # which fails unless one answer is right
        assert 2 <= len(question.options) <= 6
        assert all([question.text.strip(), *(option.text.strip() for option in question.options)])
        assert len({option.text for option in question.options}) == len(question.options)
        assert re.fullmatch(r"(\d\d|home)/[a-z0-9]+(-[a-z0-9]+){0,5}", name)
        wrong_remarks = [option.remark for index, option in enumerate(question.options) if index != question.answer]
        for text in (question.why, *wrong_remarks):
            assert len(text.split()) >= 6, text
            assert re.search(r"[.!?)]$", text), text
            assert text.count("`") % 2 == 0, text
        remarks += wrong_remarks
    assert [remark for remark, times in Counter(remarks).items() if times > 1] == []


@EACH
def test_no_notebook_holds_an_answer_in_clear(path: Path) -> None:
    assert answers_in(path.read_text(encoding="utf-8"), questions_of(path)) == []
    assert not any("answer=" in source for source in sources(path) if "predict(" in source)


@pytest.mark.slow
@EACH
def test_no_page_made_of_a_notebook_holds_an_answer_in_clear(path: Path) -> None:
    """The outputs are those that running the notebook now would store."""
    notebook = stored(path)
    for cell in notebook.cells:
        if cell.cell_type == "code" and not PREDICT_CALL.search(cell.source):
            cell.outputs = []  # long, and checked above
    assert answers_in(nbformat.writes(notebook), questions_of(path)) == []
    if path in NOTEBOOKS[3:5]:  # the others are converted in the same way
        page, _ = HTMLExporter().from_notebook_node(notebook)
        assert all(inline_html(question.text) in page for question in questions_of(path))
        assert answers_in(page, questions_of(path)) == []


def test_an_answer_in_clear_is_found() -> None:
    question = find_question("03/where-do-the-weights-go")
    for text in (question.why, inline_html(question.why), json.dumps(inline_html(question.why))):
        assert answers_in(f"x {text} y", [question]) == [question.why]
    assert answers_in(base64.b64encode(question.why.encode()).decode(), [question]) == [question.why]


def normalized(text: str) -> str:
    """Return the words and numbers of a text in lower case, separated by spaces."""
    return " ".join(["", *re.findall(r"\w+(?:[.,]\d+)*", text.lower()), ""])


def runs_of(text: str) -> set[str]:
    """Return all runs of four words in a text; a shorter text of at least two words is one run."""
    tokens = normalized(text).split()
    size = min(4, len(tokens))
    starts = range(len(tokens) - size + 1) if size > 1 else ()
    return {f" {' '.join(tokens[start : start + size])} " for start in starts}


def texts_above(cells: list[Any]) -> Iterator[tuple[Question, str]]:
    """Yield each question with the texts, code and outputs above it in its section."""
    above = ""
    for cell in cells:
        *_, below = re.split(r"^(?=#{1,3} )", cell.source, flags=re.MULTILINE)
        if cell.cell_type == "markdown" and below.startswith("#"):
            above = below
            continue
        if cell.cell_type == "code" and (call := PREDICT_CALL.search(cell.source)):
            yield find_question(call[1]), above
            continue
        outputs = [
            output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", [])
        ]
        above = "\n".join([above, cell.source, *outputs])


@EACH
def test_nothing_above_a_question_shows_its_right_option(path: Path) -> None:
    for question, above in texts_above(nbformat.read(path, as_version=4).cells):
        right = question.options[question.answer]
        others = normalized(
            " . ".join([question.text, *(option.text for option in question.options if option is not right)])
        )
        visible = normalized(above)
        repeated = [run for run in runs_of(right.text) if run in visible and run not in others]
        assert repeated == [], question.name


def test_the_index_of_a_right_option_reveals_nothing() -> None:
    """In the series and in its first half, each index is right about as often."""
    for notebooks in (NOTEBOOKS, NOTEBOOKS[:7]):
        questions = [question for path in notebooks for question in questions_of(path)]
        for size, least, most in ((3, 0.25, 0.45), (4, 0.2, 0.4)):
            right = Counter(question.answer for question in questions if len(question.options) == size)
            shares = [right[index] / right.total() for index in range(size)]
            assert all(least <= share <= most for share in shares), (size, shares)


@EACH
def test_all_that_follows_a_question_is_folded(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    before = [cell.metadata.get("jupyter", {}) for cell in notebook.cells]
    runpy.run_path(str(ROOT / "tests" / "refresh_notebooks.py"))["fold_outcomes"](notebook)
    after = [cell.metadata.get("jupyter", {}) for cell in notebook.cells]
    assert before == after


def follows_bets(path: Path) -> Iterator[tuple[Any, bool]]:
    """Yield each cell from a question to the next heading, and whether an output is above it or none is below it."""
    cells = nbformat.read(path, as_version=4).cells
    covered, last = following(cells)
    for index in sorted(covered | last):
        question = max(other for other in questions(cells) if other < index)
        end = next((other for other in range(index, len(cells)) if other in last or other not in covered), len(cells))
        outputs = [other for other in range(question + 1, end) if cells[other].get("outputs")]
        yield cells[index], not outputs or outputs[0] < index


@EACH
def test_nothing_that_follows_a_bet_is_open_before_it(path: Path) -> None:
    """JupyterLab shows the first text of a folded output; texts that give the answer away are in <details>."""
    folded = 0
    for cell, has_outputs in follows_bets(path):
        above = re.split(r"^(?=#{1,3} )", cell.source, flags=re.MULTILINE)[0].strip()
        if cell.cell_type == "code":
            assert cell.metadata["jupyter"]["source_hidden"] is True, f"code in sight: {cell.source[:80]}"
        if cell.cell_type == "code" and cell.outputs:
            assert cell.metadata["jupyter"]["outputs_hidden"] is True
            assert cell.outputs[0].get("data") == {}, f"shown above its fold: {cell.outputs[0]}"
            folded += 1
        elif cell.cell_type == "markdown" and above and has_outputs:
            assert re.fullmatch(r"<details class=.after-bet.>.*</details>", above, re.DOTALL), f"open: {above[:80]}"
            assert above.count("<details") == above.count("</details>") == 1 + above.count("<details>")
            folded += 1
    assert folded >= len(questions_of(path)) - 1


def test_the_loss_that_a_bet_is_about_is_in_the_lab_below() -> None:
    """A question names its switch as the panel of the loss does."""
    names = [name for name in question_names() if find_question(name).loss]
    assert HOME in names
    for name in names:
        question = find_question(name)
        assert question.loss.decided <= question.loss.over
        assert all(option.course and option.course[0] == 1 for option in question.options)
        if isinstance(question.loss.after, str):
            switch, value = question.loss.after.split()
            before = Recipe(optimizer="sgd", accumulate=4, amp="off", zero_grad=value != "on")
            after = before.replace(**{switch: {"off": False, "on": True}.get(value, value)})
            assert after.changes_from(before) == [question.loss.after]

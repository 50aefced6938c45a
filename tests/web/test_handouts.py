"""Worksheets and answers: they match the notebooks, questions and exercises; worksheets hold no answers."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from gradlab_site.handouts import answers_markdown, worksheet_text, worksheets_markdown
from refresh_worksheets import ROOT, WORKSHEETS, read_off

from gradlab.course.exercises import exercise_texts
from gradlab.course.series import series_notebooks
from gradlab.widgets import find_question, question_names

QUESTIONS = sorted((ROOT / "gradlab" / "widgets" / "questions").glob("[0-9]*.toml"))
NOTEBOOKS = {each.number: each for each in series_notebooks()}


@pytest.fixture(scope="module")
def answers() -> str:
    return answers_markdown(NOTEBOOKS.values())


def cells(number: str) -> list[str]:
    text = (ROOT / "notebooks" / NOTEBOOKS[number].file).read_text(encoding="utf-8")
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"]]


def unindented(text: str) -> str:
    """Remove the indentation of all lines: a loop may be in a function."""
    return re.sub(r"^ +", "", text, flags=re.M)


def test_there_is_one_for_each_notebook() -> None:
    assert sorted(path.stem for path in WORKSHEETS.glob("*")) == list(NOTEBOOKS)


@pytest.mark.parametrize("number", NOTEBOOKS)
def test_a_worksheet_asks_all_and_answers_nothing(number: str) -> None:
    """Title, aims and bets come from python tests/refresh_worksheets.py; the code is the notebook's."""
    sheet, text = worksheets_markdown([NOTEBOOKS[number]]), worksheet_text(number)
    read = read_off(ROOT / "notebooks" / NOTEBOOKS[number].file)
    assert {"title": text.title, "can": list(text.aims), "bets": list(text.bets)} == read
    assert len(text.bets) >= (1 if number == "13" else 2)  # the cheat sheet has few questions
    boxes = 0
    for question in map(find_question, text.bets):
        boxes += len(question.options)
        assert question.text in sheet
        assert all(f"- [ ] {option.text}\n" in sheet for option in question.options)
        assert question.why not in sheet
        assert not any(option.remark and option.remark in sheet for option in question.options)
    for count, entry in enumerate(text.ticket, 1):
        boxes += len(entry.options)
        assert f"**{count}. {entry.question}**\n" in sheet
        assert entry.say not in sheet
        assert entry.options or entry.wrong not in sheet or len(entry.wrong) < 40
    for name, context in text.contexts.items():
        code = f"```python\n{context.code}```\n\n" if context.code else ""
        assert f"{text.bets.index(name) + 1}. {context.says}\n\n{code}**{find_question(name).text}**\n" in sheet
        assert any(unindented(context.code).strip() in unindented(cell) for cell in cells(number))
    assert sheet.count("- [ ] ") == boxes
    assert sheet.count("because ___") == len(text.bets)
    assert "\u2713" not in sheet


def test_exit_questions_and_indices_of_answers_differ() -> None:
    tickets = [entry for number in NOTEBOOKS for entry in worksheet_text(number).ticket]
    assert len({entry.question for entry in tickets}) == len({entry.say for entry in tickets}) == len(tickets) == 70
    rights = [entry.options.index(entry.answer) for entry in tickets if entry.options]
    assert all(rights.count(index) < 0.6 * len(rights) for index in (0, 1, 2))


def test_the_answers_have_each_question_and_reason(answers: str) -> None:
    count = 0
    for path in QUESTIONS:
        bets = worksheet_text(path.stem).bets
        for slug, entry in tomllib.loads(path.read_text(encoding="utf-8")).items():
            count += 1
            name = f"{path.stem}/{slug}"
            number = f" {bets.index(name) + 1}" if name in bets else ""
            part = answers.partition(f"### Bet{number} `{name}`\n")[2].partition("\n### ")[0]
            assert part.startswith(f"\n{entry['question']}\n")
            assert f"Why: {entry['why']}" in part
            for option in entry["options"]:
                right = f"- **\u2713 {option['text']}**"
                line = right if "right" in option else f"- {option['text']} \u2192 {option['remark']}"
                assert line in part.splitlines()
            assert part.count("\u2713") == 1
    assert answers.count("### Bet ") == count == sum(not name.startswith("home/") for name in question_names())


def test_the_answers_have_each_ticket_and_exercise(answers: str) -> None:
    for path in WORKSHEETS.glob("[0-9]*.toml"):
        part = answers.partition(f"### Exit ticket {path.stem}\n")[2].partition("\n### ")[0]
        for number, entry in enumerate(tomllib.loads(path.read_text(encoding="utf-8"))["ticket"], 1):
            question = f"{number}. {entry['question']}\n\n- **\u2713 {entry['answer']}**\n"
            assert f"{question}- {entry['wrong']} \u2192 {entry['say']}\n" in part
    for name, text in exercise_texts().items():
        part = answers.partition(f"### Exercise `{name}`: ")[2].partition("\n### ")[0]
        assert part.partition("```python\n")[2].partition("```")[0] == text.solution
        assert re.findall(r"^- `([\w-]+)` \u2192 \S", part, re.M) == list(text.remarks)
        assert ("Typical mistakes" in part) == bool(text.remarks), "loops to mend have none"

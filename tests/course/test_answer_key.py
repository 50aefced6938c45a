"""The key for teachers: every question and exercise is in it, and its solutions pass."""

from __future__ import annotations

import html
import re
import tomllib
from pathlib import Path

import pytest

from gradlab.__main__ import main
from gradlab.course import AnswerKey, exercise
from gradlab.course.handouts import worksheet_text

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = sorted((ROOT / "gradlab" / "widgets" / "questions").glob("*.toml"))
WORKSHEETS = sorted((ROOT / "gradlab" / "course" / "worksheets").glob("*.toml"))
EXERCISES = {  # the name of each: what stands below its heading, and the number of its notebook
    name: (text, path.stem[2:])
    for path in sorted((ROOT / "gradlab" / "course" / "exercises").glob("nb*.md"))
    for name, text in re.findall(r"^## `(\w+)`: (.+?)(?=^## |\Z)", path.read_text(encoding="utf-8"), re.M | re.S)
}


def letters(text: str) -> str:
    """A text without tags, spaces and the marks of code."""
    return re.sub(r"[\s`]", "", html.unescape(re.sub(r"<style.*?</style>|</?[a-z][^>]*>", " ", text, flags=re.S)))


def test_every_question_is_in_it_with_its_answer_reason_and_remarks() -> None:
    key, page = AnswerKey().markdown(), letters(AnswerKey().page())
    asked = 0
    for path in QUESTIONS:
        for slug, entry in tomllib.loads(path.read_text(encoding="utf-8")).items():
            asked += 1
            name = f"{path.stem}/{slug}"
            bets = worksheet_text(path.stem).bets
            place = f" {bets.index(name) + 1}" if name in bets else ""
            part = key.partition(f"### Bet{place} `{name}`\n")[2].partition("\n### ")[0]
            assert part.startswith(f"\n{entry['question']}\n")
            assert f"Why: {entry['why']}" in part
            for option in entry["options"]:
                line = (
                    f"- **\u2713 {option['text']}**"
                    if "right" in option
                    else f"- {option['text']} \u2192 {option['remark']}"
                )
                assert line in part.splitlines()
            assert part.count("\u2713") == 1
            for text in (entry["question"], entry["why"], *(option.get("remark", "") for option in entry["options"])):
                assert letters(text) in page
    assert key.count("### Bet ") == asked > 100


def test_every_exit_ticket_is_in_it_with_the_wrong_answer_to_expect() -> None:
    key = AnswerKey().markdown()
    for path in WORKSHEETS:
        part = key.partition(f"### Exit ticket {path.stem}\n")[2].partition("\n### ")[0]
        for place, entry in enumerate(tomllib.loads(path.read_text(encoding="utf-8"))["ticket"], 1):
            asked = f"{place}. {entry['question']}\n\n- **\u2713 {entry['answer']}**\n"
            assert f"{asked}- {entry['wrong']} \u2192 {entry['say']}\n" in part
    assert key.count("### Exit ticket ") == len(WORKSHEETS) == 14


def test_every_exercise_is_in_it_with_its_mistakes() -> None:
    key = AnswerKey().markdown()
    for name, (text, _) in EXERCISES.items():
        part = key.partition(f"### Exercise `{name}`: ")[2].partition("\n### ")[0]
        remarks = re.findall(r"^- `([\w-]+)`", text.partition("### Mistakes")[2], re.M)
        assert re.findall(r"^- `([\w-]+)` \u2192 \S", part, re.M) == remarks
    assert key.count("### Exercise ") == len(EXERCISES) == 40


@pytest.mark.parametrize("name", EXERCISES)
def test_the_solution_that_is_printed_is_the_one_that_is_tried(name: str) -> None:
    key = AnswerKey([EXERCISES[name][1]]).markdown()
    part = key.partition(f"### Exercise `{name}`: ")[2]
    assert part.partition("```python\n")[2].partition("```")[0] == exercise(name).solution


def test_the_command_prints_or_writes_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["answers", "03", "13"]) == 0
    printed = capfd.readouterr().out
    assert re.findall(r"^## (.*)$", printed, re.M) == ["03 forgetting_zero_grad", "13 cheat_sheet"]
    for name in ("key.md", "key.html"):
        assert main(["answers", "-o", str(tmp_path / name)]) == 0
    capfd.readouterr()
    assert (tmp_path / "key.md").read_text(encoding="utf-8") == AnswerKey().markdown()
    assert not re.search(r"https?:|src=|<script", (tmp_path / "key.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["answers", "14"], "a notebook is one of 00, 01, "),
        (["answers", "-o", "key.pdf"], "the file must end in .md or .html, got 'key.pdf'"),
        (["answers", "-o", "no such folder/key.md"], "cannot be written: No such file or directory"),
    ],
)
def test_bad_input_is_one_line(capfd: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main(arguments) == 2
    errors = capfd.readouterr().err
    assert said in errors
    assert errors.count("\n") == 1

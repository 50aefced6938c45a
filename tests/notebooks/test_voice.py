"""The voice of the series: plain sentences of a readable length, without the words listed in voice.toml."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from gradlab_site.handouts import worksheet_text
from test_series import NOTEBOOKS, READMES, sources_of

from gradlab.course.cheat_sheet import cheat_sheet
from gradlab.course.exercises import exercise_texts
from gradlab.widgets.question import find_question, question_names

HERE = Path(__file__).parent
RULES = tomllib.loads((HERE / "voice.toml").read_text(encoding="utf-8"))
WORDS = {
    kind: re.compile("|".join(rf"(?<!\w)(?:{pattern})(?!\w)" for pattern in patterns), re.I)
    for kind, patterns in RULES["words"].items()
}
SHORT = {mark.lower() for mark in RULES["short"]["marks"]}
# Not prose: code, formulas, addresses, comments, tags. Code in a sentence counts as one word.
BLOCKS = re.compile(r"```.*?```|\$\$.*?\$\$|<!--.*?-->|^\[[^\]]+\]: [^\n]*|^ *\|[^\n]*|^#+ [^\n]*", re.S | re.M)
PARAGRAPHS = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )")
ENDS = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)[)*\"]*\s+(?=[(*\"]*[A-Z0-9`\[])| \u00b7 ")
WORKSHEETS = sorted((HERE.parents[1] / "site" / "worksheets").glob("*.toml"))
PAGES = [*READMES, READMES[1].parent / "CLASSROOM.md"]


def texts() -> Iterator[tuple[str, str]]:
    """Yield each text for learners or teachers, with its source."""
    for path in NOTEBOOKS:
        yield (
            path.name,
            "\n\n".join(text for text in sources_of(path, "markdown") if not text.startswith("## Where the claims")),
        )
    for name in question_names():
        question = find_question(name)
        parts = (question.text, *(option.remark for option in question.options if option.remark), question.why)
        yield f"question {name}", "\n\n".join(parts)
    for name, text in exercise_texts().items():
        yield f"exercise {name}", "\n\n".join((text.spec, *text.hints, *text.remarks.values()))
    for path in WORKSHEETS:
        for number, exit_question in enumerate(worksheet_text(path.stem).ticket, 1):
            yield f"exit ticket {path.stem}/{number}", f"{exit_question.question}\n\n{exit_question.say}"
        for name, context in worksheet_text(path.stem).contexts.items():
            yield f"worksheet {name}", context.says
    sheet = cheat_sheet()
    yield "cheat sheet", "\n\n".join((sheet.sizes["says"], *(margin.says for margin in sheet.margins.values())))
    for path in PAGES:
        yield path.name, path.read_text(encoding="utf-8")


def paragraphs(text: str) -> Iterator[list[str]]:
    """Split markdown into paragraphs of sentences of plain words; a formula or a piece of code is one word."""
    text = re.sub(r"\$[^$]+\$", "x", BLOCKS.sub("\n\n", text))
    text = re.sub(r"`([^`]*)`", lambda code: re.sub(r"\s", "\u00a0", code[0]).replace(".", "\u2024"), text)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)  # alternative text of pictures is not read
    text = re.sub(r"(?<=[.!?]\s)\[(\w)", lambda link: f"[{link[1].upper()}", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|\[([^\]]*)\]\[[^\]]*\]", lambda link: link[1] or link[2] or "", text)
    text = re.sub(r"(?<=[.!?]\s)\*\*(\w)", lambda bold: bold[1].upper(), text)  # a bold name starts a sentence
    text = re.sub(r"<[^>]+>|\*\*", "", text)
    for paragraph in PARAGRAPHS.split(text):
        plain = re.sub(r"^\s*(?:[-*]|\d+\.) ", "", paragraph)
        parts = [re.sub(r"[ \n]+", " ", each.replace("*", "")).strip() for each in ENDS.split(plain)]
        if sentences := [each for each in parts if re.search(r"\w", each)]:
            yield sentences


def count_words(sentence: str) -> int:
    return sum(bool(re.search(r"\w", word)) for word in sentence.split(" "))


def faults(text: str) -> list[str]:
    """Return the violations of the rules, each with its sentence."""
    messages = []
    for paragraph in paragraphs(text):
        short = [each for each in paragraph if count_words(each) < RULES["shortest"] and re.search(r"[.!]\W*$", each)]
        short = [each for each in short if each.strip(' .:!()"').lower() not in SHORT]
        if len(short) > 1:
            messages.append(f"telegram: {' | '.join(short)}")
        for sentence in paragraph:
            if count_words(sentence) > RULES["longest"]:
                messages.append(f"{count_words(sentence)} words: {sentence}")
            prose = re.sub(r"`[^`]*`", "`code`", sentence)
            messages += [
                f"{kind} ({match[0]}): {sentence}" for kind, rule in WORDS.items() if (match := rule.search(prose))
            ]
    return messages


def test_the_voice_is_plain() -> None:
    assert {where: bad for where, text in texts() if (bad := faults(text))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "Nobody says so when the loss falls.",
        "It shall be cleared before each window begins.",
        "That loop has an illness that you know.",
        "It is full. It stays full.",
        " ".join(["word"] * 31) + ".",
        "Above it is nothing that the step could use.",
        "Who forgets the line sees the loss swing.",
    ],
)
def test_what_is_against_the_rules_is_found(text: str) -> None:
    assert faults(text)


def test_plain_text_passes() -> None:
    code = "Call `optimizer.zero_grad()` before each forward.\n\n```python\nnobody()\n```\n\n"
    assert faults(f"{code}*What to see. The loss falls to 0.2 in 60 updates.*") == []


# What a step applies again is "reused". The field calls a gradient stale that was computed at older weights.
STALE = re.compile(r"stale|leftover|already used", re.I)
TEXTS = {".py", ".js", ".css", ".html", ".j2", ".json", ".md", ".toml", ".ipynb"}
MAY_SAY_STALE = {
    "gradlab/doctor/": "optimizer-holds-stale-params is a public code, of parameters",
}


def sources() -> Iterator[tuple[str, str]]:
    """Yield the files of the package, the site and the notebooks, without outputs of cells."""
    root = HERE.parents[1]
    for top in ("*.md", "gradlab/**/*.*", "site/**/*.*", "notebooks/*.*"):
        for path in root.glob(top):
            text = path.read_text("utf-8") if path.suffix in TEXTS and path.name != "CHANGELOG.md" else ""
            if path.suffix == ".ipynb":
                text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
            yield path.relative_to(root).as_posix(), text


def test_what_is_applied_again_is_reused_and_not_stale() -> None:
    files = {where for where, text in sources() if STALE.search(text.replace("optimizer-holds-stale-params", ""))}
    allowed = {where for where in files if where.startswith(tuple(MAY_SAY_STALE))}
    assert files == allowed

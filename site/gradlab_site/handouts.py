"""Handouts for a class as Markdown: worksheets with exit tickets to print, and answers for teachers.

They are generated from the folder ``worksheets``, the questions and the exercises.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gradlab.course.exercises import exercise_texts
from gradlab.course.series import SeriesNotebook
from gradlab.widgets import find_question, question_names

_WORKSHEETS = Path(__file__).parents[1] / "worksheets"
_TICKET_LENGTH = 5
_LINE = "______________________________"


@dataclass(frozen=True)
class ExitQuestion:
    """A question of an exit ticket: multiple choice if it has options, otherwise open."""

    question: str
    answer: str
    wrong: str  # the wrong answer to expect
    say: str  # the teacher's reply to the wrong answer
    options: tuple[str, ...] = ()


class BetContext(NamedTuple):
    """The text that a notebook shows above a bet: a sentence or two, and the code if the bet is about a loop."""

    says: str
    code: str = ""


@dataclass(frozen=True)
class WorksheetText:
    """The texts of a worksheet; tests/refresh_worksheets.py copies the title, aims and bets from the notebook."""

    title: str
    aims: tuple[str, ...]  # skills that the notebook teaches, worded to follow "Afterwards you can"
    bets: tuple[str, ...]  # the names of the questions in the notebook's core, in order
    ticket: tuple[ExitQuestion, ...]
    contexts: Mapping[str, BetContext]  # name of a bet -> its context


@cache
def worksheet_text(number: str) -> WorksheetText:
    """Return the worksheet of notebook ``number``. Raises ValueError if the worksheet's file is inconsistent."""
    entry = tomllib.loads((_WORKSHEETS / f"{number}.toml").read_text(encoding="utf-8"))
    ticket = tuple(_exit_question(number, **question) for question in entry["ticket"])
    if len(ticket) != _TICKET_LENGTH:
        raise ValueError(f"worksheet {number}: an exit ticket must have {_TICKET_LENGTH} questions, got {len(ticket)}")
    contexts = {name: BetContext(**part) for name, part in entry.get("given", {}).items()}
    if unknown := contexts.keys() - set(entry["bets"]):
        raise ValueError(f"worksheet {number}: keys of [given] must be bets of the worksheet, got {sorted(unknown)}")
    return WorksheetText(entry["title"], tuple(entry["can"]), tuple(entry["bets"]), ticket, contexts)


def _exit_question(number: str, options: Iterable[str] = (), **texts: Any) -> ExitQuestion:
    question = ExitQuestion(**texts, options=tuple(options))
    if question.options and not {question.answer, question.wrong} <= set(question.options):
        raise ValueError(f"worksheet {number}: the answers must be among the options of {question.question!r}")
    if question.answer == question.wrong:
        raise ValueError(f"worksheet {number}: the right and the wrong answer must differ for {question.question!r}")
    return question


def worksheets_markdown(notebooks: Iterable[SeriesNotebook]) -> str:
    """Return the worksheets of ``notebooks`` as one Markdown text, without answers."""
    return "\n\n".join(part for notebook in notebooks for part in _worksheet(notebook.number)) + "\n"


def _worksheet(number: str) -> Iterator[str]:
    text = worksheet_text(number)
    heading = f"{number} \u00b7 {text.title}"
    yield f"## {heading}"
    yield f"Name {_LINE}"
    yield "Afterwards you can " + " \u00b7 ".join(text.aims) + "."
    yield f"Each bet is in notebook {number}. Tick a box, write why, then bet there. A wrong bet costs nothing."
    for count, name in enumerate(text.bets, 1):
        question, prefix = find_question(name), f"{count}. "
        if name in text.contexts:
            yield prefix + text.contexts[name].says
            if text.contexts[name].code:
                yield f"```python\n{text.contexts[name].code}```"
            prefix = ""
        yield f"**{prefix}{question.text}**"
        yield _boxes(option.text for option in question.options)
        yield f"because {_LINE}"
    yield f"## Exit ticket {heading}"
    yield f"Name {_LINE}"
    for count, exit_question in enumerate(text.ticket, 1):
        yield f"**{count}. {exit_question.question}**"
        yield _boxes(exit_question.options) if exit_question.options else _LINE
    yield "**What is still unclear?**"
    yield from (_LINE, _LINE)


def _boxes(options: Iterable[str]) -> str:
    return "\n".join(f"- [ ] {option}" for option in options)


_ABOUT_ANSWERS = (
    "For teachers. A bet with a number is on the worksheet of its notebook; the others come in the part Deeper. "
    "\u2713 marks the right option of a bet; each of the others is followed by the remark that a learner gets. "
    "An exit ticket has the right answer, the wrong one to expect, and what to say to it. "
    "The solutions use `import math`, `import torch` and `from torch import nn`."
)


def answers_markdown(notebooks: Iterable[SeriesNotebook]) -> str:
    """Return the answers to bets, exit tickets and exercises of ``notebooks`` in Markdown, with typical mistakes."""
    return "\n\n".join([_ABOUT_ANSWERS, *(part for notebook in notebooks for part in _answers(notebook))]) + "\n"


def _answers(notebook: SeriesNotebook) -> Iterator[str]:
    text = worksheet_text(notebook.number)
    yield f"## {notebook.number} {notebook.name}"
    for name in question_names():
        if name.partition("/")[0] == notebook.number:
            question = find_question(name)
            sheet_number = f" {text.bets.index(name) + 1}" if name in text.bets else ""
            yield f"### Bet{sheet_number} `{name}`"
            yield question.text
            options = [f"- {option.text} \u2192 {option.remark}" for option in question.options]
            options[question.answer] = f"- **\u2713 {question.options[question.answer].text}**"
            yield "\n".join(options)
            yield f"Why: {question.why}"
    yield f"### Exit ticket {notebook.number}"
    for count, exit_question in enumerate(text.ticket, 1):
        yield f"{count}. {exit_question.question}"
        yield f"- **\u2713 {exit_question.answer}**\n- {exit_question.wrong} \u2192 {exit_question.say}"
    for name, exercise in exercise_texts().items():
        if exercise.notebook[:2] == notebook.number:
            yield f"### Exercise `{name}`: {exercise.title} ({exercise.level}, {exercise.minutes} minutes)"
            yield exercise.spec
            yield f"```python\n{exercise.solution}```"
            if exercise.remarks:  # exercises with a loop to mend have no remarks, because ``watch`` reports the bug
                yield "Typical mistakes, and what the check says to each:"
                yield "\n".join(f"- `{mistake}` \u2192 {remark}" for mistake, remark in exercise.remarks.items())

"""What a teacher prints for each notebook: a worksheet with an exit ticket, and the answers; as Markdown or HTML.

Their words are the files in the folder ``worksheets``, the questions and the exercises.
"""

from __future__ import annotations

import html
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ..formatting import html_page, inline_html
from ..widgets import find_question, question_names
from .exercises import exercise_notebooks, exercise_texts
from .series import series_notebooks


class HandoutBlock(NamedTuple):
    """A piece of a handout.

    ``kind`` is ``"h1"`` to ``"h3"``, ``"p"``, ``"code"``, ``"item"`` of a list, ``"ask"`` for a question to answer on
    paper, ``"given"`` for what it is about, ``"box"`` to tick, or ``"line"`` to write on, after its text.
    """

    kind: str
    text: str
    remark: str = ""
    right: bool = False


class Handout:
    """Blocks under a title."""

    def __init__(self, title: str, blocks: Iterable[HandoutBlock]) -> None:
        self._title, self._blocks = title, tuple(blocks)

    def markdown(self) -> str:
        """Return it as Markdown."""
        text, before = "", ""
        for block in self._blocks:
            listed = before == block.kind and block.kind in ("item", "box")
            text += "\n" if before and not listed else ""
            text += _MARKDOWN[block.kind].format(_markdown_words(block)) + "\n"
            before = block.kind
        return text

    def page(self) -> str:
        """Return it as one HTML page that needs nothing else."""
        text, before = "", ""
        for block in self._blocks:
            if (before == "item") != (block.kind == "item"):
                text += "</ul>\n" if before == "item" else "<ul>\n"
            words = html.escape(block.text) if block.kind == "code" else _html_words(block)
            text += _HTML[block.kind].format(words) + "\n"
            before = block.kind
        style = files("gradlab.course").joinpath("handout.css").read_text(encoding="utf-8")
        return html_page(self._title, text + "</ul>" * (before == "item"), style)


def _chosen(numbers: Sequence[str]) -> tuple[str, ...]:
    """Return the numbers of notebooks that are asked for, all without any; ValueError names one that does not exist."""
    known = tuple(notebook.number for notebook in series_notebooks())
    for number in numbers:
        if number not in known:
            raise ValueError(f"a notebook is one of {', '.join(known)}, got {number!r}")
    return tuple(number for number in known if number in numbers) or known


_MARKDOWN = {
    "h1": "# {}",
    "h2": "## {}",
    "h3": "### {}",
    "p": "{}",
    "code": "```python\n{}```",
    "item": "- {}",
    "given": "{}",
    "ask": "**{}**",
    "box": "- [ ] {}",
    "line": "{} ______________________________",
}
_HTML = {
    "h1": "<h1>{}</h1>",
    "h2": "<h2>{}</h2>",
    "h3": "<h3>{}</h3>",
    "p": "<p>{}</p>",
    "code": "<pre>{}</pre>",
    "item": "<li>{}</li>",
    "given": '<p class="given">{}</p>',
    "ask": '<p class="ask">{}</p>',
    "box": '<p class="box"><span></span>{}</p>',
    "line": '<p class="line">{}<span></span></p>',
}


def _markdown_words(block: HandoutBlock) -> str:
    words = f"**\u2713 {block.text}**" if block.right else block.text
    return f"{words} \u2192 {block.remark}" if block.remark else words


def _html_words(block: HandoutBlock) -> str:
    words = inline_html(block.text)
    words = f"<b>\u2713 {words}</b>" if block.right else words
    return f"{words} \u2192 <i>{inline_html(block.remark)}</i>" if block.remark else words


_TICKET = 5


@dataclass(frozen=True)
class ExitQuestion:
    """A question of an exit ticket: to tick if it has options, else to answer in a line."""

    question: str
    options: tuple[str, ...]
    answer: str
    wrong: str
    """The wrong answer to expect."""
    say: str
    """What to say to it."""


class GivenOnPaper(NamedTuple):
    """What a bet needs on paper and the notebook shows above it: a sentence or two, and code if it is about a loop."""

    says: str
    code: str = ""


@dataclass(frozen=True)
class WorksheetText:
    """The worksheet of a notebook. tests/refresh_worksheets.py reads its title, aims and bets off the notebook."""

    title: str
    can: tuple[str, ...]
    """What one can do afterwards."""
    bets: tuple[str, ...]
    """The names of the questions of its core, in order."""
    ticket: tuple[ExitQuestion, ...]
    given: Mapping[str, GivenOnPaper]
    """What stands before a bet on paper, by its name."""


@cache
def worksheet_text(number: str) -> WorksheetText:
    """Return the text for a notebook. Raises ValueError for what is wrong in its file."""
    text = files("gradlab.course").joinpath("worksheets", f"{number}.toml").read_text(encoding="utf-8")
    read = tomllib.loads(text)
    ticket = tuple(_exit_question(number, entry) for entry in read["ticket"])
    if len(ticket) != _TICKET:
        raise ValueError(f"worksheet {number}: an exit ticket has {_TICKET} questions, got {len(ticket)}")
    given = {name: GivenOnPaper(**entry) for name, entry in read.get("given", {}).items()}
    if not given.keys() <= set(read["bets"]):
        raise ValueError(
            f"worksheet {number}: given for no bet of its core: {sorted(given.keys() - set(read['bets']))}"
        )
    return WorksheetText(read["title"], tuple(read["can"]), tuple(read["bets"]), ticket, given)


def _exit_question(number: str, entry: dict[str, Any]) -> ExitQuestion:
    made = ExitQuestion(
        entry["question"], tuple(entry.get("options", ())), entry["answer"], entry["wrong"], entry["say"]
    )
    if made.options and not {made.answer, made.wrong} <= set(made.options):
        raise ValueError(f"worksheet {number}: the answers must be among the options of {made.question!r}")
    if made.answer == made.wrong:
        raise ValueError(f"worksheet {number}: the wrong answer is the right one of {made.question!r}")
    return made


_NAME = HandoutBlock("line", "Name")


class Worksheet(Handout):
    """The worksheets of all notebooks, or of some by their numbers. They hold no answers."""

    def __init__(self, numbers: Sequence[str] = ()) -> None:
        """Raises ValueError that names a number that no notebook has."""
        chosen = _chosen(numbers)
        super().__init__("gradlab: worksheets", (block for number in chosen for block in _worksheet(number)))


def _worksheet(number: str) -> Iterator[HandoutBlock]:
    text = worksheet_text(number)
    heading = f"{number} \u00b7 {text.title}"
    yield HandoutBlock("h2", heading)
    yield _NAME
    yield HandoutBlock("p", "Afterwards you can " + " \u00b7 ".join(text.can) + ".")
    yield HandoutBlock(
        "p",
        f"Each bet stands in notebook {number}. Tick a box, write why, then run its cell. A wrong bet costs nothing.",
    )
    for place, name in enumerate(text.bets, 1):
        question, number_of_it = find_question(name), f"{place}. "
        if name in text.given:
            given = text.given[name]
            yield HandoutBlock("given", number_of_it + given.says)
            if given.code:
                yield HandoutBlock("code", given.code)
            number_of_it = ""
        yield HandoutBlock("ask", number_of_it + question.text)
        yield from (HandoutBlock("box", option.text) for option in question.options)
        yield HandoutBlock("line", "because")
    yield HandoutBlock("h2", f"Exit ticket {heading}")
    yield _NAME
    for place, exit_question in enumerate(text.ticket, 1):
        yield HandoutBlock("ask", f"{place}. {exit_question.question}")
        yield from (HandoutBlock("box", option) for option in exit_question.options)
        if not exit_question.options:
            yield HandoutBlock("line", "")
    yield HandoutBlock("ask", "What is still unclear?")
    yield from [HandoutBlock("line", "")] * 2


_ABOUT = (
    "For teachers. A bet with a number is on the worksheet of its notebook; the others come in the part Deeper. "
    "\u2713 marks the right option of a bet, and the others stand with the remark that a learner gets. "
    "An exit ticket has the right answer, the wrong one to expect, and what to say to it. "
    "The solutions use `import math`, `import torch` and `from torch import nn`."
)


class AnswerKey(Handout):
    """The key to all notebooks, or to some of them by their numbers."""

    def __init__(self, numbers: Sequence[str] = ()) -> None:
        """Raises ValueError that names a number that no notebook has."""
        super().__init__("gradlab: answers", _answers(_chosen(numbers)))


def _answers(numbers: Sequence[str]) -> Iterator[HandoutBlock]:
    texts, homes = exercise_texts(), exercise_notebooks()
    yield HandoutBlock("h1", "Answers")
    yield HandoutBlock("p", _ABOUT)
    for notebook in series_notebooks():
        if notebook.number not in numbers:
            continue
        yield HandoutBlock("h2", f"{notebook.number} {notebook.name}")
        for name in question_names():
            if name.partition("/")[0] == notebook.number:
                yield from _question(name, worksheet_text(notebook.number).bets)
        yield from _ticket(notebook.number)
        for name, text in texts.items():
            if homes[name][:2] == notebook.number:
                yield HandoutBlock("h3", f"Exercise `{name}`: {text.title} ({text.level}, {text.minutes} minutes)")
                yield HandoutBlock("p", text.spec)
                yield HandoutBlock("code", text.solution)
                yield HandoutBlock("p", "Typical mistakes, and what the check says to each:")
                yield from (HandoutBlock("item", f"`{mistake}`", remark) for mistake, remark in text.remarks.items())


def _question(name: str, on_worksheet: Sequence[str]) -> Iterator[HandoutBlock]:
    question = find_question(name)
    sheet_place = f" {on_worksheet.index(name) + 1}" if name in on_worksheet else ""
    yield HandoutBlock("h3", f"Bet{sheet_place} `{name}`")
    yield HandoutBlock("p", question.text)
    for place, option in enumerate(question.options):
        yield HandoutBlock("item", option.text, option.remark, right=place == question.answer)
    yield HandoutBlock("p", f"Why: {question.why}")


def _ticket(number: str) -> Iterator[HandoutBlock]:
    yield HandoutBlock("h3", f"Exit ticket {number}")
    for place, it in enumerate(worksheet_text(number).ticket, 1):
        yield HandoutBlock("p", f"{place}. {it.question}")
        yield HandoutBlock("item", it.answer, right=True)
        yield HandoutBlock("item", it.wrong, it.say)

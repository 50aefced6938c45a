"""What the worksheet of each notebook says, and its exit ticket: the files in the folder ``worksheets``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

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


@dataclass(frozen=True)
class WorksheetText:
    """The worksheet of a notebook. All but the ticket is read off the notebook, by tests/refresh_worksheets.py."""

    title: str
    can: tuple[str, ...]
    """What one can do afterwards."""
    bets: tuple[str, ...]
    """The names of the questions of its core, in order."""
    ticket: tuple[ExitQuestion, ...]


@cache
def worksheet_text(number: str) -> WorksheetText:
    """Return the text for a notebook. Raises ValueError for what is wrong in its file."""
    text = files("gradlab.course").joinpath("worksheets", f"{number}.toml").read_text(encoding="utf-8")
    read = tomllib.loads(text)
    ticket = tuple(_exit_question(number, entry) for entry in read["ticket"])
    if len(ticket) != _TICKET:
        raise ValueError(f"worksheet {number}: an exit ticket has {_TICKET} questions, got {len(ticket)}")
    return WorksheetText(read["title"], tuple(read["can"]), tuple(read["bets"]), ticket)


def _exit_question(number: str, entry: dict[str, Any]) -> ExitQuestion:
    made = ExitQuestion(
        entry["question"], tuple(entry.get("options", ())), entry["answer"], entry["wrong"], entry["say"]
    )
    if made.options and not {made.answer, made.wrong} <= set(made.options):
        raise ValueError(f"worksheet {number}: the answers must be among the options of {made.question!r}")
    if made.answer == made.wrong:
        raise ValueError(f"worksheet {number}: the wrong answer is the right one of {made.question!r}")
    return made

"""What the worksheet of each notebook says, and its exit ticket: the files in the folder ``worksheets``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

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

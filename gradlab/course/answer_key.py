"""The answers for teachers: every question with its reason, every exercise with a solution and typical mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..widgets import find_question, question_names
from .exercises import exercise_notebooks, exercise_texts
from .handout import Handout, HandoutBlock, chosen_notebooks
from .progress.series import series_notebooks
from .worksheet_text import worksheet_text

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
        super().__init__("gradlab: answers", _blocks(chosen_notebooks(numbers)))


def _blocks(numbers: Sequence[str]) -> Iterator[HandoutBlock]:
    """Write the key to these notebooks from the words of the questions, exit tickets and exercises."""
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

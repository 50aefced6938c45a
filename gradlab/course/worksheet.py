"""Worksheets to print: for each notebook the bets of its core on a page, and an exit ticket of five questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..widgets import find_question
from .handout import Handout, HandoutBlock, chosen_notebooks
from .worksheet_text import worksheet_text

_NAME = HandoutBlock("line", "Name")


class Worksheet(Handout):
    """The worksheets of all notebooks, or of some by their numbers. They hold no answers."""

    def __init__(self, numbers: Sequence[str] = ()) -> None:
        """Raises ValueError that names a number that no notebook has."""
        chosen = chosen_notebooks(numbers)
        super().__init__("gradlab: worksheets", (block for number in chosen for block in _blocks(number)))


def _blocks(number: str) -> Iterator[HandoutBlock]:
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

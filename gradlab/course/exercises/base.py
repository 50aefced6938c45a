"""What every exercise has, and how it is shown."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

from ...formatting import html_box, inline_html
from ...widgets import CHECK, RECORD
from .definition import Definition
from .verdict import NOT_ATTEMPTED, Verdict


@dataclass(frozen=True)
class Mistake:
    """A typical wrong answer: its name, the remark that fits, and an answer that makes it."""

    name: str
    remark: str
    answer: object
    """A function like the one that is asked for, or a value where a value is asked for."""


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """Something to write, and a check for it, as a notebook shows it."""

    name: str
    notebook: str
    """Where it stands: ``"03_forgetting_zero_grad"``."""
    title: str
    level: str
    """``"easy"``, ``"medium"`` or ``"harder"``."""
    minutes: int
    spec: str
    """One sentence that says what to write; code between backticks."""
    stub: str
    """What stands in the notebook to begin with. The last name that it defines is the answer."""
    hints: tuple[str, ...]
    """From a nudge to nearly the answer."""
    mistakes: tuple[Mistake, ...]
    solution: str = field(repr=False)
    """A right answer, for teachers: ``python -m gradlab answers`` prints it."""
    definition: Definition

    def check(self, answer: object) -> Verdict:
        """Try an answer on random cases and return the Verdict; a wrong one is a verdict, never an exception.

        Whether it passed goes into the learner's record, the answer does not.
        """
        from .checking import check

        verdict = check(self, answer)
        if verdict.state != NOT_ATTEMPTED:
            RECORD.add(CHECK, self.name, right=bool(verdict))
        return verdict

    def __repr__(self) -> str:
        left = f"Hints: {len(self.hints)}, in .hints" if self.hints else ""
        return f"{self.title} ({self.level}, {self.minutes} minutes)\n{self.spec}\n{left}".rstrip()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        RECORD.visit(self.notebook[:2])
        ladder = ""
        for number, hint in reversed(list(enumerate(self.hints, 1))):
            more = f"<summary>Hint {number} of {len(self.hints)}</summary><div>{inline_html(hint)}</div>"
            ladder = f'<details style="margin:4px 0 0 12px">{more}{ladder}</details>'
        head = f"<b>{html.escape(self.title)}</b> ({self.level}, {self.minutes} minutes)<br>"
        return {"text/plain": repr(self), "text/html": html_box(f"{head}{inline_html(self.spec)}{ladder}", "#0072B2")}

"""Exercises that are read from Markdown files, and verdicts on answers. PyTorch is imported only to check an answer."""

from __future__ import annotations

import html
import importlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...formatting import html_box, inline_html, svg_img

RIGHT, NOT_YET, NOT_ATTEMPTED = "right", "not yet", "not attempted"
_SIGNS = {  # each state has a symbol as well as a colour, for readers who cannot tell the colours apart
    RIGHT: ("\u2713 Right", "#009E73"),
    NOT_YET: ("\u2717 Not yet", "#D55E00"),
    NOT_ATTEMPTED: ("\u25cb Not attempted yet", "#767676"),
}
_EXERCISE = re.compile(
    r"## `(?P<name>\w+)`: (?P<title>[^\n]+) \((?P<level>easy|medium|harder), (?P<minutes>\d+) minutes\)\n+"
    r"(?P<spec>(?!```|#).+?)\n+```python\n(?P<stub>.+?\n)```\n+"
    r"### Hints\n+(?P<hints>1\. .+?)\n+"
    r"(?:### Mistakes\n+(?P<mistakes>- `.+?)\n+)?"
    r"### Solution\n+```python\n(?P<solution>.+?\n)```\n*",
    re.DOTALL,
)
_HINT = re.compile(r"^\d+\. (.+?)(?=\n\d+\. |\Z)", re.DOTALL | re.MULTILINE)
_REMARK = re.compile(r"^- `([a-z0-9-]+)`: (.+?)(?=\n- `|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """The result of checking an answer to an exercise. A Verdict is truthy if the answer is right."""

    state: str
    """``"right"``, ``"not yet"`` or ``"not attempted"``."""
    remark: str
    mistake: str | None = None
    """The name of the typical mistake in the answer; None if it has no typical mistake."""
    picture: str | None = field(default=None, repr=False, compare=False)
    """The effect of the answer, drawn as SVG; None if there is no picture."""
    report: Any = field(default=None, compare=False)
    """The report of ``watch`` on a loop that is not mended yet; None for all other answers."""

    def __bool__(self) -> bool:
        return self.state == RIGHT

    def __repr__(self) -> str:
        text = f"{_SIGNS[self.state][0]}. {self.remark}".rstrip()
        return text if self.report is None else f"{text}\n{self.report}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        head, colour = _SIGNS[self.state]
        picture = "" if self.picture is None else f"<br>{svg_img(self.picture, self.remark, 560)}"
        page = html_box(f"<b>{head}.</b> {inline_html(self.remark)}{picture}", colour)
        report = "" if self.report is None else self.report._repr_html_()
        return {"text/plain": repr(self), "text/html": page + report}


@dataclass(frozen=True)
class Exercise:
    """A task for the learner, with hints and a check. A notebook displays the task, with the hints folded."""

    name: str
    notebook: str
    """The name of its notebook, such as ``"03_forgetting_zero_grad"``."""
    title: str
    level: str
    """``"easy"``, ``"medium"`` or ``"harder"``."""
    minutes: int
    spec: str
    """The task as one paragraph, with code between backticks."""
    stub: str
    """The starting code that the notebook shows. The last name that it defines is the answer."""
    hints: tuple[str, ...]
    """The hints in order, from a nudge to nearly the whole answer."""
    remarks: dict[str, str]
    """The remark on each typical mistake, by the name of the mistake."""
    solution: str = field(repr=False)
    """A right answer, written as a learner might write it; the check compares answers with it."""

    @property
    def definition(self) -> Any:
        """The Definition or Mending that checks answers: the object called ``name`` in a module such as ``nb03``."""
        return getattr(importlib.import_module(f".nb{self.notebook[:2]}", __package__), self.name)

    def check(self, answer: object) -> Verdict:
        """Check ``answer`` and return a Verdict, even if the answer raises an error other than KeyboardInterrupt."""
        return self.definition.check(self, answer)

    def __repr__(self) -> str:
        hints = f"Hints: {len(self.hints)}, in .hints"
        return f"{self.title} ({self.level}, {self.minutes} minutes)\n{self.spec}\n{hints}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        ladder = ""
        for number, hint in reversed(list(enumerate(self.hints, 1))):
            more = f"<summary>Hint {number} of {len(self.hints)}</summary><div>{inline_html(hint)}</div>"
            ladder = f'<details style="margin:4px 0 0 12px">{more}{ladder}</details>'
        head = f"<b>{html.escape(self.title)}</b> ({self.level}, {self.minutes} minutes)<br>"
        return {"text/plain": repr(self), "text/html": html_box(f"{head}{inline_html(self.spec)}{ladder}", "#0072B2")}


def read_exercises(path: Path) -> dict[str, Exercise]:
    """Return the exercises in the Markdown file ``path``, by name. Raises ValueError if one has a wrong format."""
    heading, *texts = re.split(r"^(?=## )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    exercises: dict[str, Exercise] = {}
    for text in texts:
        parts = _EXERCISE.fullmatch(text)
        if parts is None:
            order = "a ## heading, a spec, a stub, ### Hints, optional ### Mistakes and a ### Solution"
            raise ValueError(f"{path}: an exercise must have {order}, got other parts in {text.splitlines()[0]!r}")
        exercises[parts["name"]] = Exercise(
            name=parts["name"],
            notebook=heading.removeprefix("# ").strip(),
            title=parts["title"],
            level=parts["level"],
            minutes=int(parts["minutes"]),
            spec=_one_line(parts["spec"]),
            stub=parts["stub"],
            hints=tuple(map(_one_line, _HINT.findall(parts["hints"]))),
            remarks={name: _one_line(remark) for name, remark in _REMARK.findall(parts["mistakes"] or "")},
            solution=parts["solution"],
        )
    return exercises


def _one_line(text: str) -> str:
    return " ".join(text.split())

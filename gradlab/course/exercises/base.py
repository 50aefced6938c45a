"""An exercise: its words, which are read from the ``.md`` of its notebook, and how it is shown."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...formatting import html_box, inline_html
from .definition import Definition, Verdict

_HEADING = "a heading such as ## `period_of`: Read the period off the curve (harder, 12 minutes)"
_CODE = r"```python\n(.+?\n)```\n+"
_PARTS = {  # of an exercise, in this order: what each is called, and what it looks like
    _HEADING: r"## `(\w+)`: ([^\n]+) \((easy|medium|harder), (\d+) minutes\)\n+",
    "a paragraph that says what to write": r"(?![#`]{3})(.+?)\n+(?=```|#|\Z)",
    "the stub, between ```python and ```": _CODE,
    "### Hints, written 1. ...": r"### Hints\n+(\d+\. .+?)\n+(?=#|\Z)",
    "### Mistakes, written - `name`: ...": r"### Mistakes\n+(- `[a-z0-9-]+`: .+?)\n+(?=#|\Z)",
    "### Solution, between ```python and ```": rf"### Solution\n+{_CODE}",
    "the next exercise": r"()\Z",
}
_HINT = re.compile(r"^\d+\. (.+?)(?=\n\d+\. |\Z)", re.DOTALL | re.MULTILINE)
_REMARK = re.compile(r"^- `([a-z0-9-]+)`: (.+?)(?=\n- `|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class ExerciseText:
    """What a learner reads of an exercise."""

    notebook: str
    """Where it stands: ``"03_forgetting_zero_grad"``."""
    title: str
    level: str
    """``"easy"``, ``"medium"`` or ``"harder"``."""
    minutes: int
    spec: str
    """A paragraph that says what to write; code between backticks."""
    stub: str
    """What stands in the notebook to begin with. The last name that it defines is the answer."""
    hints: tuple[str, ...]
    """From a nudge to nearly the answer."""
    remarks: dict[str, str]
    """What the check says to a typical mistake, by the mistake's name."""
    solution: str = field(repr=False)
    """A right answer, as a learner may write it, for teachers: ``python -m gradlab answers`` prints it."""


def read_texts(path: Path) -> dict[str, ExerciseText]:
    """Read the exercises of a notebook, by name; raise ValueError that says where in the file what is missing."""
    notebook, *exercises = re.split(r"^(?=## )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    title = re.fullmatch(r"# (\d\d_\w+)\n+", notebook)
    if title is None:
        raise ValueError(f"{path}: it begins with the notebook's name, such as # 03_forgetting_zero_grad")
    texts: dict[str, ExerciseText] = {}
    for text in exercises:
        name, *parts = _parts_of(text, path)
        if name in texts:
            raise ValueError(f"{path}: there are two exercises `{name}`")
        heading, level, minutes, spec, stub, hints, mistakes, solution, _ = parts
        texts[name] = ExerciseText(
            notebook=title[1],
            title=heading,
            level=level,
            minutes=int(minutes),
            spec=_one_line(spec),
            stub=stub,
            hints=tuple(map(_one_line, _HINT.findall(hints))),
            remarks={name: _one_line(remark) for name, remark in _REMARK.findall(mistakes)},
            solution=solution,
        )
    return texts


def _parts_of(text: str, path: Path) -> list[str]:
    """Cut an exercise into its name, title, level and so on."""
    parts: list[str] = []
    at = 0
    for what, looks in _PARTS.items():
        found = re.compile(looks, re.DOTALL).match(text, at)
        if found is None:
            where = f"{path}, exercise `{parts[0]}`" if parts else str(path)
            raise ValueError(f"{where}: here should be {what}, not {text[at:].partition(chr(10))[0]!r}")
        parts += found.groups()
        at = found.end()
    return parts


def _one_line(text: str) -> str:
    return " ".join(text.split())


@dataclass(frozen=True, kw_only=True)
class Exercise(ExerciseText):
    """Something to write, and a check for it, as a notebook shows it."""

    name: str
    definition: Definition = field(repr=False)

    def check(self, answer: object) -> Verdict:
        """Try an answer on random cases and return the Verdict; a wrong one is a verdict, never an exception."""
        from .checking import check

        return check(self.definition, self.stub, self.remarks, answer)

    def __repr__(self) -> str:
        left = f"Hints: {len(self.hints)}, in .hints" if self.hints else ""
        return f"{self.title} ({self.level}, {self.minutes} minutes)\n{self.spec}\n{left}".rstrip()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        ladder = ""
        for number, hint in reversed(list(enumerate(self.hints, 1))):
            more = f"<summary>Hint {number} of {len(self.hints)}</summary><div>{inline_html(hint)}</div>"
            ladder = f'<details style="margin:4px 0 0 12px">{more}{ladder}</details>'
        head = f"<b>{html.escape(self.title)}</b> ({self.level}, {self.minutes} minutes)<br>"
        return {"text/plain": repr(self), "text/html": html_box(f"{head}{inline_html(self.spec)}{ladder}", "#0072B2")}

"""The words of an exercise, as in its ``.md`` file: title, level, minutes, spec, stub, hints, remarks, solution."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

EXERCISE_LEVELS = ("easy", "medium", "harder")

_WHOLE = re.compile(
    r"---\nlevel: (?P<level>[^\n]+)\nminutes: (?P<minutes>\d+)\n---\n+"
    r"# (?P<title>[^\n]+)\n+"
    r"(?P<spec>.+?)\n+"
    r"```python\n(?P<stub>.+?\n)```\n+"
    r"## Hints\n+(?P<hints>.+?)\n+"
    r"## Mistakes\n+(?P<mistakes>.+?)\n+"
    r"## Solution\n+```python\n(?P<solution>.+?\n)```\n*",
    re.DOTALL,
)
_HINT = re.compile(r"^\d+\. (.+?)(?=\n\d+\. |\Z)", re.DOTALL | re.MULTILINE)
_REMARK = re.compile(r"^- `([a-z0-9-]+)`: (.+?)(?=\n- `|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class ExerciseText:
    """What a learner reads of an exercise."""

    title: str
    level: str
    minutes: int
    spec: str
    stub: str
    hints: tuple[str, ...]
    remarks: dict[str, str]
    """By the mistake's name."""
    solution: str
    """A right answer, as a learner may write it: for teachers."""


def read_text(path: Path) -> ExerciseText:
    """Read the text of an exercise; raise ValueError that names the file where a part is missing or misplaced."""
    found = _WHOLE.fullmatch(path.read_text(encoding="utf-8"))
    if found is None:
        order = "front matter with level and minutes, # title, spec, ```python stub, ## Hints, ## Mistakes, ## Solution"
        raise ValueError(f"{path}: the parts of an exercise are, in this order: {order}")
    if found["level"] not in EXERCISE_LEVELS:
        raise ValueError(f"{path}: level must be one of {', '.join(EXERCISE_LEVELS)}, got {found['level']!r}")
    hints = tuple(_one_line(hint) for hint in _HINT.findall(found["hints"]))
    remarks = {name: _one_line(remark) for name, remark in _REMARK.findall(found["mistakes"])}
    if not hints or not remarks:
        raise ValueError(f"{path}: hints are written `1. ...`, mistakes `` - `name`: ... ``, at least one of each")
    return ExerciseText(
        title=found["title"],
        level=found["level"],
        minutes=int(found["minutes"]),
        spec=_one_line(found["spec"]),
        stub=found["stub"],
        hints=hints,
        remarks=remarks,
        solution=found["solution"],
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())

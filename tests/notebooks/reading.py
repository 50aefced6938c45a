"""Minutes to read and play a notebook, for its header, the map and the teachers' page.

A minute is 160 words, or 15 visible lines of code; a question takes 1 minute, a loop to mend 2, a lab or an
instrument 4. The minutes of an exercise are in its definition and count in its part of the notebook.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradlab.course.series import SeriesNotebook, series_notebooks

WORDS, LINES, QUESTION, MENDED, PLAYED = 160, 15, 1.0, 2.0, 4.0
INSTRUMENTS = ("Lab", "ForecastLab", "swing", "ring_of_orders", "peak", "loss_scale", "two_ranks")
_PLAYED = re.compile(rf"(?<![\w.])(?:course\.\w+|{'|'.join(INSTRUMENTS)})\(")
_QUESTION = re.compile(r"(?<![\w.])predict\(\"")
_MENDED = re.compile(r"(?<![\w.])exercise\(\"mend_")
_EXERCISE = re.compile(r"(?<![\w.])exercise\(\"(?!mend_)(\w+)\"\)")  # loops to mend count as played
_ANY_EXERCISE = re.compile(r"(?<![\w.])exercise\(\"(\w+)\"\)")
# Links to Binder and Colab do not count: they depend on the copy.
_HIDDEN = re.compile(r"<!--.*?-->|<summary>After your bet</summary>|<[^<>]+>|\]\([^)]*\)|^\[[^\]]+\]: .*$", re.S | re.M)
CLOSING = ("Recap", "Deeper", "Exercises", "Where the claims come from")
PARTS = {"Recap": "core", "Deeper": "deeper", "Exercises": "exercises", "Where the claims come from": "sources"}


@dataclass(frozen=True)
class Reading:
    """Whole minutes of the three parts of a notebook, and the word count of its prose."""

    core: int
    deeper: int
    exercises: int
    word_count: int


def reading(path: Path) -> Reading:
    """Return the times of a notebook; its sources are looked up, not read, and do not count."""
    spent, word_count = {"core": 0.0, "deeper": 0.0}, 0
    exercises: list[str] = []
    part = "core"
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        headings = re.findall(r"^## (.+)$", text, re.M) if cell["cell_type"] == "markdown" else []
        for heading in headings:
            part = PARTS.get(heading.strip(), part)
        if part != "sources":
            word_count += count_words(text) if cell["cell_type"] == "markdown" else 0
        named = _EXERCISE.findall(text) if cell["cell_type"] == "code" else []
        if part in spent:
            spent[part] += minutes(cell) + _minutes_of(named)
        else:
            exercises += _ANY_EXERCISE.findall(text) if cell["cell_type"] == "code" else []
    return Reading(math.ceil(spent["core"]), math.ceil(spent["deeper"]), _minutes_of(exercises), word_count)


def header(times: Reading) -> str:
    """Return the text with the minutes in a notebook's first cell."""
    return f"**Time** core {times.core} minutes, deeper {times.deeper}, exercises {times.exercises}"


def builds_on(notebook: SeriesNotebook) -> str:
    """Return the text with the prerequisites in a notebook's first cell."""
    links = {each.number: f"[{each.number}]({each.file})" for each in series_notebooks()}
    needs, helpful = ([links.get(number, number) for number in part] for part in (notebook.needs, notebook.helps))
    kind = "notebooks " if len(needs) > 1 else "notebook " if set(notebook.needs) & set(links) else ""
    also = f"; {' and '.join(helpful)} help" if helpful else ""
    return f"**Builds on** {kind}{' and '.join(needs) or 'a little Python'}{also}."


def total(times: list[Reading]) -> str:
    """Return the summary of the series on the teachers' page."""
    hours = [
        f"{sum(parts) / 60:.1f} hours" for parts in zip(*[(r.core, r.deeper, r.exercises) for r in times], strict=True)
    ]
    return f"the cores take {hours[0]}, the deeper sections {hours[1]} and the exercises {hours[2]}."


def minutes(cell: dict[str, Any]) -> float:
    """Return the minutes of a cell."""
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return count_words(text) / WORDS
    if _QUESTION.search(text):
        return QUESTION
    if _MENDED.search(text):
        return MENDED
    return visible_lines(cell) / LINES + (PLAYED if _PLAYED.search(text) else 0.0)


def visible_lines(cell: dict[str, Any]) -> int:
    """Return the number of lines of code that a cell shows: 0 for a text or a folded cell."""
    if cell["cell_type"] != "code" or cell["metadata"].get("cellView") == "form":
        return 0
    return sum(bool(line.strip()) for line in "".join(cell["source"]).splitlines())


def count_words(text: str) -> int:
    """Return the number of visible words of a markdown cell: no addresses, no tags, no bare signs."""
    return sum(bool(re.search(r"\w", word)) for word in _HIDDEN.sub(" ", text).split())


def _minutes_of(exercises: list[str]) -> int:
    from gradlab import exercise

    return sum(exercise(name).minutes for name in exercises)

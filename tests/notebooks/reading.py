"""How long a notebook takes to read and play, by one rule: its header, the map and the teacher's page show it.

A minute is 160 words, or 15 visible lines of code; a question takes 1 minute, a loop to mend 2, a lab or an
instrument 4. An exercise takes what its own definition says, in the part where it stands.
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
_ASKED = re.compile(r"(?<![\w.])predict\(\"")
_MENDED = re.compile(r"(?<![\w.])exercise\(\"mend_")
_EXERCISE = re.compile(r"(?<![\w.])exercise\(\"(?!mend_)(\w+)\"\)")  # a loop to mend stands where it is played
_ANY_EXERCISE = re.compile(r"(?<![\w.])exercise\(\"(\w+)\"\)")
# Links to Binder and Colab are no lesson, and whether there are any depends on the copy.
_UNSEEN = re.compile(r"<!--.*?-->|<summary>After your bet</summary>|<[^<>]+>|\]\([^)]*\)|^\[[^\]]+\]: .*$", re.S | re.M)
CLOSING = ("Recap", "Deeper", "Exercises", "Where the claims come from")
PARTS = {"Recap": "core", "Deeper": "deeper", "Exercises": "exercises", "Where the claims come from": "sources"}


@dataclass(frozen=True)
class Reading:
    """Whole minutes of the three parts of a notebook, and the words of its prose."""

    core: int
    deeper: int
    exercises: int
    words: int


def reading(path: Path) -> Reading:
    """Return what a notebook takes; where the claims come from is looked up, not read."""
    spent, words = {"core": 0.0, "deeper": 0.0}, 0
    exercises: list[str] = []
    part = "core"
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        headings = re.findall(r"^## (.+)$", text, re.M) if cell["cell_type"] == "markdown" else []
        for heading in headings:
            part = PARTS.get(heading.strip(), part)
        if part != "sources":
            words += count_words(text) if cell["cell_type"] == "markdown" else 0
        named = _EXERCISE.findall(text) if cell["cell_type"] == "code" else []
        if part in spent:
            spent[part] += minutes(cell) + _minutes_of(named)
        else:
            exercises += _ANY_EXERCISE.findall(text) if cell["cell_type"] == "code" else []
    return Reading(math.ceil(spent["core"]), math.ceil(spent["deeper"]), _minutes_of(exercises), words)


def header(read: Reading) -> str:
    """Return how a notebook's first cell tells its minutes."""
    return f"**Time** core {read.core} minutes, deeper {read.deeper}, exercises {read.exercises}"


def builds_on(notebook: SeriesNotebook) -> str:
    """Return how a notebook's title tells what comes before it."""
    links = {each.number: f"[{each.number}]({each.file})" for each in series_notebooks()}
    needs, helps = ([links.get(number, number) for number in part] for part in (notebook.needs, notebook.helps))
    kind = "notebooks " if len(needs) > 1 else "notebook " if set(notebook.needs) & set(links) else ""
    also = f"; {' and '.join(helps)} help" if helps else ""
    return f"**Builds on** {kind}{' and '.join(needs) or 'a little Python'}{also}."


def total(read: list[Reading]) -> str:
    """Return how the teacher's page sums up the series."""
    hours = [
        f"{sum(parts) / 60:.1f} hours" for parts in zip(*[(r.core, r.deeper, r.exercises) for r in read], strict=True)
    ]
    return f"the cores take {hours[0]}, the deeper sections {hours[1]} and the exercises {hours[2]}."


def minutes(cell: dict[str, Any]) -> float:
    """Return what one cell takes by the rule."""
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return count_words(text) / WORDS
    if _ASKED.search(text):
        return QUESTION
    if _MENDED.search(text):
        return MENDED
    return visible_lines(cell) / LINES + (PLAYED if _PLAYED.search(text) else 0.0)


def visible_lines(cell: dict[str, Any]) -> int:
    """Return the number of lines of code that a cell shows: none if it is a text, or folded."""
    if cell["cell_type"] != "code" or cell["metadata"].get("cellView") == "form":
        return 0
    return sum(bool(line.strip()) for line in "".join(cell["source"]).splitlines())


def count_words(text: str) -> int:
    """Return the number of words that are seen of a markdown cell: no addresses, no tags, no bare signs."""
    return sum(bool(re.search(r"\w", word)) for word in _UNSEEN.sub(" ", text).split())


def _minutes_of(exercises: list[str]) -> int:
    from gradlab import exercise

    return sum(exercise(name).minutes for name in exercises)

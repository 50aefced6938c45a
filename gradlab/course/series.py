"""The notebooks of the series, what was done in each, and the map of them with a tick for what is done."""

from __future__ import annotations

import html
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..widgets import CHECK, GUESS, RECORD, RecordEvent, RecordText, question_names
from .exercises import exercise_notebooks

_LAST = "the series"
_DONE, _BEGUN = "\u2713", "\u25d0"  # a tick, a circle half full: the second cue beside the colour


@dataclass(frozen=True)
class SeriesNotebook:
    """A notebook of the series."""

    number: str
    """``"03"``."""
    name: str
    """``"forgetting_zero_grad"``."""
    minutes: tuple[int, int, int]
    """Of its core, of its deeper sections, and of its exercises."""
    needs: tuple[str, ...]
    """The numbers of the notebooks that come before it, or ``"the series"``."""
    helps: tuple[str, ...]
    """The numbers of notebooks that help."""

    @property
    def file(self) -> str:
        """Its file name."""
        return f"{self.number}_{self.name}.ipynb"

    @property
    def needs_text(self) -> str:
        """What comes before it, as a teacher's map says it: ``00; 05 and 07 help``."""
        needs = ", ".join(self.needs) or "nothing"
        return f"{needs}; {' and '.join(self.helps)} help" if self.helps else needs


@cache
def series_notebooks() -> tuple[SeriesNotebook, ...]:
    """Return the notebooks in the order of their numbers."""
    entries = tomllib.loads(files("gradlab.course").joinpath("series.toml").read_text(encoding="utf-8"))
    return tuple(
        SeriesNotebook(
            number, entry["name"], tuple(entry["minutes"]), tuple(entry["needs"]), tuple(entry.get("helps", ()))
        )
        for number, entry in sorted(entries.items())
    )


def series_stages() -> tuple[tuple[str, tuple[SeriesNotebook, ...]], ...]:
    """Return the notebooks in the order in which they can be done: stages, each with its heading."""
    depth: dict[str, int] = {}
    for notebook in series_notebooks():
        before = [depth[other] for other in (*notebook.needs, *notebook.helps) if other in depth]
        depth[notebook.number] = 3 if _LAST in notebook.needs else max(before, default=-1) + 1
    headings = ("Start here", "Then any of these", "They build on those", "At the end")
    return tuple(
        (heading, tuple(each for each in series_notebooks() if depth[each.number] == stage))
        for stage, heading in enumerate(headings)
    )


@dataclass(frozen=True)
class NotebookTally:
    """What was done in a notebook, and what there is to do."""

    answered: int
    questions: int
    solved: int
    exercises: int

    @property
    def sign(self) -> str:
        """A tick if everything has been answered and solved, a half-full circle if anything has, else ""."""
        if (self.answered, self.solved) == (self.questions, self.exercises):
            return _DONE
        return _BEGUN if self.answered or self.solved else ""


def notebook_tallies(events: Iterable[RecordEvent]) -> dict[str, NotebookTally]:
    """Return the tally of each notebook by its number."""
    events = tuple(events)
    guessed = {event.name for event in events if event.kind == GUESS}
    passed = {event.name for event in events if event.kind == CHECK and event.right}
    found = {}
    for number in (notebook.number for notebook in series_notebooks()):
        questions = {name for name in question_names() if name.partition("/")[0] == number}
        exercises = {name for name, home in exercise_notebooks().items() if home[:2] == number}
        found[number] = NotebookTally(len(guessed & questions), len(questions), len(passed & exercises), len(exercises))
    return found


class SeriesMap:
    """The fourteen notebooks in the order in which they can be done, as HTML and as plain text."""

    def __init__(self, found: RecordText, note: str = "") -> None:
        """``found`` is what has been done; ``note`` stands below the map."""
        self._tallies, self._note = notebook_tallies(found.events), note

    def __repr__(self) -> str:
        head = f"  {'notebook':26}{'needs':22}{'core':>8}{'bets':>9}{'exercises':>12}"
        lines = [self._line(each) for each in series_notebooks()]
        return "\n".join([head, *lines, *([self._note] if self._note else [])])

    def _line(self, notebook: SeriesNotebook) -> str:
        tally = self._tallies[notebook.number]
        name = f"{notebook.number} {notebook.name}"
        bets, solved = f"{tally.answered} of {tally.questions}", f"{tally.solved} of {tally.exercises}"
        before = f"{tally.sign or ' '} {name:26}{notebook.needs_text:22}{notebook.minutes[0]:>4} min"
        return f"{before}{bets:>9}{solved:>12}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        stages = []
        for heading, notebooks in series_stages():
            tiles = "".join(_tile(notebook, self._tallies[notebook.number]) for notebook in notebooks)
            stages.append(f"<section><h4>{heading}</h4><ul>{tiles}</ul></section>")
        note = f"<p>{html.escape(self._note, quote=False)}</p>" if self._note else ""
        css = files("gradlab.course").joinpath("series_map.css").read_text(encoding="utf-8")
        page = f'<style>{css}</style><div class="gl-map"><div class="gl-map-stages">{"".join(stages)}</div>{note}</div>'
        return {"text/plain": repr(self), "text/html": page}


def _tile(notebook: SeriesNotebook, tally: NotebookTally) -> str:
    """A notebook on the map, which reads well without its style, too."""
    state = {_DONE: "done", _BEGUN: "begun"}.get(tally.sign, "open")
    name = f"{notebook.number} {notebook.name}".replace("_", "_<wbr>")  # names break at underscores only
    # A link leads to a notebook beside this one. Where gradlab is installed without its notebooks there is none.
    title = f'<a href="{notebook.file}">{name}</a>' if Path(notebook.file).is_file() else name
    mark = ""
    if tally.sign:
        mark = f'<span aria-hidden="true">{tally.sign} </span><span class="gl-map-unseen">{state}: </span>'
    counts = [_count("bets", tally.answered, tally.questions), _count("exercises", tally.solved, tally.exercises)]
    needs = f"<i>core {notebook.minutes[0]} min, needs {notebook.needs_text}</i><br>"
    return f'<li class="gl-map-{state}"><b>{mark}{title}</b><br>{needs}{", ".join(counts)}</li>'


def _count(what: str, made: int, of: int) -> str:
    return f"<span>{f'{_DONE} ' if made == of else ''}{what} {made} of {of}</span>"


def series_map() -> SeriesMap:
    """Return the map of the series with what you have done so far, in all notebooks on this machine."""
    found = RECORD.read()
    notes = [f"Your record: {found.trouble}"] if found.trouble else []
    if found.events and not RECORD.kept:
        notes.append(RECORD.where())
    return SeriesMap(found, " ".join(notes))

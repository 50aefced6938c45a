"""The map of the series: what comes before each notebook, with ticks for what the learner has done."""

from __future__ import annotations

import html
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...widgets import RECORD, RecordText
from .series import SeriesNotebook, series_notebooks, series_stages
from .tally import NotebookTally, notebook_tallies

_DONE, _BEGUN = "\u2713", "\u25d0"  # a tick, a circle half full: the second cue beside the colour


class SeriesMap:
    """The fourteen notebooks in the order in which they can be done, as HTML and as plain text."""

    def __init__(self, found: RecordText, note: str = "") -> None:
        """``found`` is what has been done; ``note`` stands below the map."""
        self._tallies, self._note = notebook_tallies(found.events), note

    def __repr__(self) -> str:
        head = f"  {'notebook':26}{'needs':22}{'core':>8}{'bets':>9}{'exercises':>12}{'spent':>10}"
        lines = [self._line(each) for each in series_notebooks()]
        return "\n".join([head, *lines, *([self._note] if self._note else [])])

    def _line(self, notebook: SeriesNotebook) -> str:
        tally = self._tallies[notebook.number]
        sign = _DONE if tally.done else _BEGUN if tally.begun else " "
        name = f"{notebook.number} {notebook.name}"
        bets, solved = f"{tally.answered} of {tally.questions}", f"{tally.solved} of {tally.exercises}"
        before = f"{sign} {name:26}{notebook.needs_text:22}{notebook.minutes[0]:>4} min"
        return f"{before}{bets:>9}{solved:>12}{tally.minutes or '-':>10}"

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
    state, sign, words = "", "", ""
    if tally.done:
        state, sign, words = "done", _DONE, "done: "
    elif tally.begun:
        state, sign, words = "begun", _BEGUN, "begun: "
    name = f"{notebook.number} {notebook.name}".replace("_", "_<wbr>")  # names break at underscores only
    # A link leads to a notebook beside this one. Where gradlab is installed without its notebooks there is none.
    title = f'<a href="{notebook.file}">{name}</a>' if Path(notebook.file).is_file() else name
    mark = f'<span aria-hidden="true">{sign} </span><span class="gl-map-unseen">{words}</span>' if sign else ""
    counts = [_count("bets", tally.answered, tally.questions), _count("exercises", tally.solved, tally.exercises)]
    counts += [f"<span>{tally.minutes} min spent</span>"] if tally.minutes else []
    needs = f"<i>core {notebook.minutes[0]} min, needs {notebook.needs_text}</i><br>"
    return f'<li class="gl-map-{state or "open"}"><b>{mark}{title}</b><br>{needs}{", ".join(counts)}</li>'


def _count(what: str, made: int, of: int) -> str:
    return f"<span>{f'{_DONE} ' if made == of else ''}{what} {made} of {of}</span>"


def series_map() -> SeriesMap:
    """Return the map of the series with what you have done so far, in all notebooks on this machine."""
    found = RECORD.read()
    notes = [f"Your record: {found.trouble}"] if found.trouble else []
    if found.events and not RECORD.kept:
        notes.append(RECORD.where())
    return SeriesMap(found, " ".join(notes))

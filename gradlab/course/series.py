"""The notebooks of the series, and a map of the order in which they can be done."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from ..formatting import number_of
from ..widgets import question_names
from .exercises import exercise_texts


@dataclass(frozen=True)
class SeriesNotebook:
    """The name, times and prerequisites of one notebook of the series."""

    number: str
    """Two digits, such as ``"03"``."""
    name: str
    """The rest of the file name, such as ``"forgetting_zero_grad"``."""
    minutes: Sequence[int]
    """The minutes for the core, the deeper sections, and the exercises."""
    needs: Sequence[str]
    """The numbers of the required notebooks, or ``["the series"]`` for all of them."""
    helps: Sequence[str] = ()
    """The numbers of notebooks that help but are not required."""

    @property
    def file(self) -> str:
        """The file name of the notebook."""
        return f"{self.number}_{self.name}.ipynb"

    @property
    def needs_text(self) -> str:
        """The numbers of the required and of the helpful notebooks as text, such as ``00; 05 and 07 help``."""
        needs = ", ".join(self.needs) or "nothing"
        return f"{needs}; {' and '.join(self.helps)} help" if self.helps else needs


@cache
def series_notebooks() -> tuple[SeriesNotebook, ...]:
    """Return all notebooks of the series, sorted by number."""
    entries = tomllib.loads(files("gradlab.course").joinpath("series.toml").read_text(encoding="utf-8"))
    return tuple(SeriesNotebook(number, **entry) for number, entry in sorted(entries.items()))


def series_stages() -> tuple[tuple[str, tuple[SeriesNotebook, ...]], ...]:
    """Return the stages of the series in order, as pairs of a heading and the notebooks of that stage."""
    depth: dict[str, int] = {}
    for notebook in series_notebooks():
        before = [depth[other] for other in (*notebook.needs, *notebook.helps) if other in depth]
        depth[notebook.number] = 5 if "the series" in notebook.needs else max(before, default=-1) + 1
    stages = {"Start with these": (0, 1, 2), "Then any of these": (3,), "They build on those": (4,), "At the end": (5,)}
    return tuple(
        (heading, tuple(each for each in series_notebooks() if depth[each.number] in depths))
        for heading, depths in stages.items()
    )


class SeriesMap:
    """A map of the notebooks, which is shown as HTML in stages, and as plain text in a table sorted by number."""

    def __repr__(self) -> str:
        lines = [f"{'notebook':26}{'needs':22}{'core':>8}{'bets':>6}{'exercises':>11}"]
        for notebook in series_notebooks():
            bets, exercises = _counts(notebook)
            name = f"{notebook.number} {notebook.name}"
            times = f"{name:26}{notebook.needs_text:22}{notebook.minutes[0]:>4} min"
            lines.append(f"{times}{bets:>6}{exercises:>11}")
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        stages = []
        for heading, notebooks in series_stages():
            stages.append(f"<section><h4>{heading}</h4><ul>{''.join(map(_tile, notebooks))}</ul></section>")
        css = files("gradlab.course").joinpath("series_map.css").read_text(encoding="utf-8")
        page = f'<style>{css}</style><div class="gl-map"><div class="gl-map-stages">{"".join(stages)}</div></div>'
        return {"text/plain": repr(self), "text/html": page}


def _counts(notebook: SeriesNotebook) -> tuple[int, int]:
    bets = sum(name.partition("/")[0] == notebook.number for name in question_names())
    return bets, sum(it.notebook[:2] == notebook.number for it in exercise_texts().values())


def _tile(notebook: SeriesNotebook) -> str:
    name = f"{notebook.number} {notebook.name}".replace("_", "_<wbr>")  # allow a line break after each underscore
    # Link only to notebooks in the working directory: gradlab may be installed without its notebooks.
    title = f'<a href="{notebook.file}">{name}</a>' if Path(notebook.file).is_file() else name
    bets, exercises = _counts(notebook)
    counts = f"{number_of(bets, 'bet')}, {number_of(exercises, 'exercise')}"
    return f"<li><b>{title}</b><br><i>core {notebook.minutes[0]} min, needs {notebook.needs_text}</i><br>{counts}</li>"


def series_map() -> SeriesMap:
    """Return the map of the series, with the prerequisites, core minutes, bets and exercises of each notebook."""
    return SeriesMap()

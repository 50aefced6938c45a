"""The notebooks of the series: name, minutes, and what comes before each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_LAST = "the series"


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

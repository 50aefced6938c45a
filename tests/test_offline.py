"""Saved files need no network: replays, instruments, pictures and the cheat sheet."""

from __future__ import annotations

from pathlib import Path

import pytest
from loaded import loaded_addresses

from gradlab import Lab
from gradlab.course import cheat_sheet, swing
from gradlab.drawing import Drawing, Text
from gradlab.widgets import Control, Instrument, Settings, View


class Still(Instrument):
    """An instrument with one picture, quick to record."""

    title = "still"

    def controls(self) -> list[Control]:
        return [Control.tick("on", start=True)]

    def render(self, settings: Settings) -> View:
        return View({"sum": Drawing("sum", [Text("sum", ("one",), 0.5, 0.5)], words="one")}, "It is one.")


def written(kind: str, folder: Path) -> str:
    """Save a file of this kind as a learner does, and return its text."""
    target = folder / f"file{Path(kind).suffix}"
    match kind:
        case "replay.html":
            Lab("bowl").record(2).save(target)
        case "instrument.html":
            Still().save(target)
        case "instrument.svg":
            swing(lr=0.1).save(target)
        case "lab.svg":
            Lab("bowl").run(3).save(target)
        case "sheet.html":
            cheat_sheet().save(target)
    return target.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["replay.html", "instrument.html", "instrument.svg", "lab.svg", "sheet.html"])
def test_a_file_loads_nothing_from_elsewhere(kind: str, tmp_path: Path) -> None:
    page = written(kind, tmp_path)
    assert len(page) > 1000
    assert loaded_addresses(page) == []


@pytest.mark.parametrize(
    "part",
    [
        "<script src='https://cdn.example/a.js'></script>",
        "<link rel=stylesheet href=//cdn.example/a.css>",
        "<img src=near.png>",
        "<style>@import 'https://fonts.example/a';</style>",
        "<p style='background: url(b.png)'>",
        "<script>import('https://cdn.example/b.js')</script>",
    ],
)
def test_each_kind_of_address_is_found(part: str) -> None:
    assert len(set(loaded_addresses(f"<p>{part}</p>"))) == 1

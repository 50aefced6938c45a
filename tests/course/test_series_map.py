"""The series and its map: as in the teachers' map, in a possible order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradlab.course import series_map
from gradlab.course.series import series_notebooks, series_stages

ROOT = Path(__file__).resolve().parents[2]


def test_the_series_is_as_the_teachers_map_has_it() -> None:
    text = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\d\d) (\w+)\]\((\S+)\) \| .* \| (\d+) \+ (\d+) \+ (\d+) \| (.*) \|$", text, re.M)
    ours = [
        (each.number, each.name, each.file, *map(str, each.minutes), each.needs_text) for each in series_notebooks()
    ]
    assert ours == rows
    assert len(ours) == 14
    placed = [notebook.number for _, stage in series_stages() for notebook in stage]
    assert sorted(placed) == [each.number for each in series_notebooks()]
    for notebook in series_notebooks():
        for other in (*notebook.needs, *notebook.helps):
            assert other == "the series" or placed.index(other) < placed.index(notebook.number)


def test_the_map_counts_bets_and_exercises() -> None:
    questions = (ROOT / "gradlab" / "widgets" / "questions" / "03.toml").read_text(encoding="utf-8")
    exercises = (ROOT / "gradlab" / "course" / "exercises" / "nb03.md").read_text(encoding="utf-8")
    counts = [
        len(re.findall(pattern, text, re.M)) for pattern, text in ((r"^\[[^.]+\]$", questions), (r"^## `", exercises))
    ]
    shown = series_map()._repr_mimebundle_()
    assert re.search(rf"^03 forgetting_zero_grad +02 +\d+ min +{counts[0]} +{counts[1]}$", shown["text/plain"], re.M)
    assert f"{counts[0]} bets, {counts[1]} exercises" in shown["text/html"]
    assert "<b>03 forgetting_<wbr>zero_<wbr>grad</b>" in shown["text/html"]  # no notebook is beside this test


def test_the_map_links_to_notebooks_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "notebooks")
    page = series_map()._repr_mimebundle_()["text/html"]
    assert sorted(re.findall(r'href="([^"]+)"', page)) == sorted(path.name for path in Path().glob("*.ipynb"))

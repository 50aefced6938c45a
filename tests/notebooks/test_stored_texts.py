"""Stored texts of instruments are what these compute now: nbval compares all of them."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from test_series import COMPARED_CALLS, NOT_PROSE, NOTEBOOKS, ROOT, computed, numbers_in, sources_of, stored, unknown

from gradlab.doctor.rules import KNOWN_CODES

QUESTIONS = ROOT / "gradlab" / "widgets" / "questions"
INSTRUMENTS = (*COMPARED_CALLS, "two_ranks")
# The beginning of a doctor's report, as an object or as a command's output, and of the check of a loop to mend.
REPORT = re.compile(r"(\$ python -m gradlab doctor .*\n+)?(No findings|\d+ findings?)\. Watched")
MENDED = re.compile(r"exercise\(\"mend_\w+\"\)\.check\(")
WORKED_OUT = {"02": numbers_in(str(2 * (-0.2 * 1 + 0.4 * -0.5 + 1) * 1))}
"""Numbers that follow from others in the worksheet: the gradient of batch 3 at (-0.2, 0.4), 2 * error * x."""
OTHER_WORDS = {"nvidia-smi"}
"""Names between backticks that look like doctor codes."""


def has_computed_text(cell: dict[str, Any]) -> bool:
    """Return whether a cell shows an instrument, a doctor's report or the check of a loop."""
    if cell["cell_type"] != "code" or "stored_after" in cell["metadata"].get("gradlab", {}):
        return False  # the stored output is not the first one
    last = (cell["source"].strip().splitlines() or [""])[-1]
    texts = ["".join(output.get("data", {}).get("text/plain", output.get("text", ""))) for output in cell["outputs"]]
    named = re.match(rf"(?:{'|'.join(INSTRUMENTS)})\(", last)
    return bool(named or MENDED.search(last) or any(map(REPORT.search, texts)))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_is_compared_when_its_notebook_runs(path: Path) -> None:
    for cell in stored(path):
        if has_computed_text(cell):
            assert "nbval-check-output" in cell["metadata"].get("tags", []), cell["id"]


def test_there_are_many() -> None:
    """The patterns find such cells."""
    cells = [cell for path in NOTEBOOKS for cell in stored(path) if has_computed_text(cell)]
    assert sum(any(REPORT.search(json.dumps(output)) for output in cell["outputs"]) for cell in cells) >= 3
    assert sum(bool(MENDED.search(cell["source"])) for cell in cells) >= 3
    assert len(cells) >= 30


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_code_of_the_doctor_that_is_named_is_one(path: Path) -> None:
    questions = tomllib.loads((QUESTIONS / f"{path.stem[:2]}.toml").read_text(encoding="utf-8"))
    texts = [*sources_of(path, "markdown"), json.dumps(questions)]
    named = {name for text in texts for name in re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", text)}
    assert named - OTHER_WORDS <= KNOWN_CODES


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_worksheets_numbers_are_those_of_its_notebook(path: Path) -> None:
    """Each number on paper is in the notebook, its outputs or its bets; numbers below ten are counts."""
    sheet = tomllib.loads((ROOT / "site" / "worksheets" / f"{path.stem[:2]}.toml").read_text(encoding="utf-8"))
    numbers = computed(path) | numbers_in("\n".join(sources_of(path, "markdown")))
    numbers |= WORKED_OUT.get(path.stem[:2], set())
    tickets = [str(entry[part]) for entry in sheet["ticket"] for part in ("question", "answer", "say")]
    for text in [*tickets, *(entry["says"] for entry in sheet.get("given", {}).values())]:
        prose = re.sub(r"PyTorch \d\.\d+", "", NOT_PROSE.sub(" ", text))
        assert [each for each in unknown(prose, numbers) if not re.fullmatch(r"\d", each)] == [], text

"""Notebook 09 is stored with its tables, and its exercise's formula agrees with the ledger."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gradlab import exercise
from gradlab.course.exercises.checking import stub_of
from gradlab.course.exercises.nb09 import sizes
from gradlab.course.instruments.peak import PeakSettings, measure_peak

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "09_gpu_memory.ipynb"
FORMULA = stub_of(exercise("peak_bytes").solution)


def cells() -> dict[str, dict[str, Any]]:
    return {cell["id"]: cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]}


TABLES = """
    in step() 512 KiB | A, all rows at once | B, four | checkpointing | 16 bytes for each | segments
    | within rounding: True | 8 rows, AMP True | 4 x 2 rows | billion numbers
"""


def test_each_table_is_stored() -> None:
    outputs = [out for cell in cells().values() if cell["cell_type"] == "code" for out in cell["outputs"]]
    printed = "\n".join("".join(out.get("text", [])) for out in outputs)
    assert [phrase for phrase in map(str.strip, TABLES.split("|")) if phrase not in printed] == []


@pytest.mark.parametrize(("width", "depth", "batch"), [(64, 6, 128), (256, 6, 32), (128, 6, 64), (32, 8, 16)])
def test_the_formula_of_the_exercise_is_what_is_measured(width: int, depth: int, batch: int) -> None:
    measured = measure_peak(PeakSettings(width=width, depth=depth, batch=batch)).peak
    assert FORMULA(*sizes(width, depth, batch)) == pytest.approx(measured, rel=0.005)


def test_the_answer_to_the_first_bet_is_that_of_the_formula() -> None:
    bets = tomllib.loads((ROOT / "gradlab/widgets/questions/09.toml").read_text(encoding="utf-8"))
    numbers = re.findall(r"(\d+) KiB", bets["where-is-the-peak"]["why"])
    weights, activations, inputs, backward, step = sizes(64, 6, 128)
    moments = (3 * weights + activations + inputs + backward, 4 * weights + inputs + step)
    assert [round(moment / 1024) for moment in moments] == [int(number) for number in numbers]


def test_the_message_is_read_as_its_numbers_say() -> None:
    text = "".join(cells()["message"]["source"])
    requested, free, unallocated = (
        float(re.search(rf"{pattern}", text)[1])
        for pattern in (r"allocate ([\d.]+) GiB", r"which ([\d.]+) GiB is free", r"and ([\d.]+) GiB is reserved")
    )
    assert f"{free} + {unallocated} = {free + unallocated:.2f} GiB, less than [{requested}]" in text
    assert free + unallocated < requested

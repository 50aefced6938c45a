"""Notebook 09 is stored with its tables: nbval compares what is stored, and would not miss what is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "09_gpu_memory.ipynb"


@pytest.mark.parametrize(
    "words",
    [
        "128 rows, set_to_none=False",
        "8 rows, set_to_none=False",
        "zero_grad() before backward",
        "4 x 32",
        "4 x 2",
        "8 rows, AMP True",
        "step after backward",
        "2 x 16 rows",
        "H100s, at least",
    ],
)
def test_each_table_is_stored(words: str) -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    outputs = [out for cell in cells if cell["cell_type"] == "code" for out in cell["outputs"]]
    assert any(words in "".join(out.get("text", [])) for out in outputs)

"""Notebook 09 is stored with its tables: nbval compares what is stored, and would not miss what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from gradlab import Ledger, Recipe, forecast

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "09_gpu_memory.ipynb"


def cells() -> dict[str, dict[str, Any]]:
    return {cell["id"]: cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]}


TABLES = """
    128 rows, set_to_none=False | 8 rows, set_to_none=False | zero_grad() before backward | 4 x 32 | 4 x 2
    | 8 rows, AMP True | step after backward | 2 x 16 rows | published 6 GB | without dropout in attention
    | H100s, at least
"""


def test_each_table_is_stored() -> None:
    outputs = [out for cell in cells().values() if cell["cell_type"] == "code" for out in cell["outputs"]]
    printed = "\n".join("".join(out.get("text", [])) for out in outputs)
    assert [words for words in map(str.strip, TABLES.split("|")) if words not in printed] == []


def test_it_is_stored_without_a_gpu_and_says_so() -> None:
    *_, said = cells()["fit-measured"]["outputs"]
    assert "nothing was measured" in "".join(said["text"])


def test_what_a_gpu_measures_is_the_loop_that_is_forecast() -> None:
    names: dict[str, Any] = {"cross_entropy": cross_entropy}
    exec("".join(cells()["fit-train"]["source"]), names)
    with torch.device("meta"):
        layer = nn.TransformerEncoderLayer(16, 2, 64, 0.0, batch_first=True, norm_first=True)
        body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        shapes = nn.Sequential(nn.Embedding(300, 16), body, nn.Linear(16, 300), nn.Flatten(0, 1))
    tokens = torch.zeros(4, 32, dtype=torch.long)
    ahead = forecast(shapes, Recipe(optimizer="adamw"), batch=(tokens, tokens.flatten()), device="cpu")
    model = shapes.to_empty(device="cpu")
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.1)
    optimizer = torch.optim.AdamW(model.parameters())
    with Ledger(model, [optimizer], tokens) as ledger:
        names["train"](model, optimizer, tokens)
    assert ledger.peak == ahead.peak

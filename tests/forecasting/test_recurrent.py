"""Recurrent layers on a CPU against a Ledger over a real run, and the units of a small model's table."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from sampling import every
from torch import Tensor, nn

from gradlab import Recipe
from gradlab.forecasting import forecast
from gradlab.forecasting.fake_mode import FakeTensors
from gradlab.forecasting.training import Training
from tests.forecasting.test_forecast import run_under_ledger


class Reader(nn.Module):
    """A recurrent layer, and a linear one on its last output."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.recurrent = getattr(nn, kind)(12, 20, **options)
        self.head = nn.Linear(40 if options.get("bidirectional") else 20, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.recurrent(x)[0][:, -1])


@pytest.mark.parametrize("amp", ["off", "bf16"])
@pytest.mark.parametrize(
    "options",
    [
        {"batch_first": True},
        {"num_layers": 2, "dropout": 0.3},
        {"num_layers": 2, "bidirectional": True, "batch_first": True, "dropout": 0.3, "bias": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", every(3, ["LSTM", "GRU", "RNN"], 2))
def test_recurrent_layers_on_a_cpu_are_what_a_ledger_counts(kind: str, options: dict[str, Any], amp: str) -> None:
    model, recipe = Reader(kind, **options), Recipe(amp=amp, optimizer="adam")
    batch = torch.rand(7, 9, 12), torch.rand(7, 3)
    result = forecast(model, recipe, batch=batch, device="cpu")
    ledger = run_under_ledger(model, nn.functional.mse_loss, [batch], 3, Training(recipe))
    assert (result.peak, result.at_peak) == (ledger.peak, ledger.at_peak)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 5, 300, 64), (70, 3, 7, 96), (2, 9, 256, 512), (33, 2, 64, 60)])
def test_what_an_lstm_keeps_is_what_its_kernel_keeps(sizes: tuple[int, ...], dtype: torch.dtype) -> None:
    steps, rows, features, width = sizes

    def workspace() -> Tensor:
        x, state = torch.ones(steps, rows, features, dtype=dtype), torch.zeros(rows, width, dtype=dtype)
        weights = [torch.zeros(4 * width, n, dtype=dtype) for n in (features, width)]
        biases = [torch.zeros(4 * width, dtype=dtype)] * 2
        flags = (False, [], 2, width, 1, True, False, False, True)
        return torch.ops.aten.mkldnn_rnn_layer.default(x, *weights, *biases, state, state, *flags)[3]

    with FakeTensors():
        fake = workspace()
    assert fake.untyped_storage().nbytes() == workspace().untyped_storage().nbytes() > 0


@pytest.mark.parametrize(("width", "unit"), [(2, "B"), (20, "KiB"), (600, "MiB"), (12_000, "GiB")])
def test_a_table_has_one_unit_in_which_its_peak_is_read_well(width: int, unit: str) -> None:
    with torch.device("meta"):
        result = forecast(nn.Linear(width, width), batch=(torch.empty(4, width), torch.empty(4, width)))
    amounts, cards = result.table().split("\nallocated")
    rows = re.findall(r"^(\w+) +([\d,.]+) (\w+)$", amounts.strip(), re.MULTILINE)
    assert {row[2] for row in rows} == {unit}
    peak = float(rows[-1][1].replace(",", ""))
    assert rows[-1][0] == "peak"
    assert 1 <= peak < 1024
    assert round(result.peak / {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit], 2) == peak
    assert "MiB" not in cards.partition("\n\nCounted")[0]

"""Notebook 05: its exercise `saved` predicts what a Ledger sees, and its scripts for torch.compile need no compiler."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from test_series import NOTEBOOKS, stored

from gradlab.course import launch
from gradlab.course.exercises import exercise
from gradlab.memory.ledger import Ledger

CELLS = {cell["id"]: cell for path in NOTEBOOKS if path.stem.startswith("05") for cell in stored(path)}


@pytest.mark.parametrize(("batch", "seed"), [(20, 0), (200, 1)])
def test_what_the_exercise_predicts_is_what_a_ledger_sees(batch: int, seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    widths = [80] + [random.choice((40, 80, 120)) for _ in range(24)]
    parts = [(torch.nn.Linear(a, b), torch.nn.Tanh()) for a, b in pairwise(widths)]
    model = torch.nn.Sequential(*(layer for pair in parts for layer in pair))
    x, optimizer = torch.randn(batch, widths[0]), torch.optim.SGD(model.parameters(), lr=0.1)
    peaks = {}
    for set_to_none in (False, True):
        for _ in range(2):
            with Ledger(model=model, optimizers=[optimizer], inputs=[x]) as ledger:
                optimizer.zero_grad(set_to_none=set_to_none)
                model(x).sum().backward()
                optimizer.step()
        peaks[set_to_none] = ledger.peak
    activations = [4 * batch * width for width in widths[1:]]
    gradients = [4 * (a * b + b) for a, b in pairwise(widths)]
    predicted = exercise("saved").definition.reference(activations, gradients)
    # What passes is left aside: one layer's fresh gradient and what goes in and out of it.
    passing = max(gradients) + 2 * max(activations)
    assert predicted > passing
    assert abs(peaks[False] - peaks[True] - predicted) <= passing


def test_nothing_that_is_compiled_needs_a_compiler() -> None:
    """The stored lines, which nbval compares, are those of a backend without one."""
    code = [cell["source"] for cell in CELLS.values() if cell["cell_type"] == "code"]
    compiled = re.findall(r"torch\.compile\(.*", "\n".join(code))
    assert compiled
    assert all("backend=" in call for call in compiled), compiled
    (network,) = [text for text in code if text.startswith("%%writefile network.py")]
    assert '"aot_eager"' in network


@pytest.mark.nightly
def test_inductor_does_as_the_backend_of_the_notebook_does(tmp_path: Path) -> None:
    """The section's words speak of it; its kernels need a few KiB less or more at the peak."""
    texts: dict[str, str] = {}
    for cell in CELLS.values():
        command, _, text = cell["source"].partition("\n")
        if command.startswith("%%writefile"):
            name = command.split()[-1]
            texts[name] = texts.get(name, "") + text + "\n"
    printed = []
    for backend in ("aot_eager", "inductor"):
        (folder := tmp_path / backend).mkdir()
        for name, text in texts.items():
            (folder / name).write_text(text.replace('"aot_eager"', f'"{backend}"'), encoding="utf-8")
        runs = [launch(folder / name, processes=1, seconds=200.0) for name in ("clearing.py", "hooks.py")]
        assert all(runs), runs
        printed.append([line.split(" peak ")[0] for run in runs for line in run.lines(0)])
    assert printed[0] == printed[1]

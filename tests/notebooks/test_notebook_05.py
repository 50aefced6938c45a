"""Notebook 05: its exercise `saved` predicts what a Ledger sees, and its scripts for torch.compile need no compiler."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
import torch
from test_series import NOTEBOOKS, stored

from gradlab.course.exercises import exercise
from gradlab.course.exercises.checking import stub_of
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
    predicted = stub_of(exercise("saved").solution)(activations, gradients)
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

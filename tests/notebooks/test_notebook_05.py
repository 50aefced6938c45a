"""What the exercise `saved` of notebook 05 predicts is what a Ledger sees of a real update."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
import torch

from gradlab.course.exercises import exercise
from gradlab.memory.ledger import Ledger


@pytest.fixture(autouse=True, params=range(3))
def _seed(request: pytest.FixtureRequest) -> None:
    random.seed(request.param)
    torch.manual_seed(request.param)


@pytest.mark.parametrize("batch", [20, 100, 200])
def test_what_the_exercise_predicts_is_what_a_ledger_sees(batch: int) -> None:
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

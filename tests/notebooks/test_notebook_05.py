"""Notebook 05: its exercise `saved` predicts what a Ledger measures; its opening and its picture are right."""

from __future__ import annotations

import random
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from itertools import pairwise

import pytest
import torch
from test_series import NOTEBOOKS, stored

from gradlab.course.exercises import exercise
from gradlab.course.exercises.checking import stub_of
from gradlab.course.exercises.nb05 import SHOWN, draw_update
from gradlab.course.instruments.peak import measure_peak, measure_update
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
    # Temporary memory is not predicted: one layer's new gradient, its input's and its output's.
    passing = max(gradients) + 2 * max(activations)
    assert predicted > passing
    assert abs(peaks[False] - peaks[True] - predicted) <= passing


def test_the_bug_that_it_opens_with_is_the_default_and_lasts() -> None:
    """Adam creates its state in the first step, so the second peak is larger by it, and later peaks are equal."""
    code = {name: "".join(cell["source"]) for name, cell in CELLS.items()}
    names = {"torch": torch, "nn": torch.nn, "Ledger": Ledger, "device": "cpu"}
    with redirect_stdout(StringIO()) as printed:
        exec(code["fits-model"], names)
        exec(code["fits-loop"].replace("(1, 2, 3)", "range(1, 30)"), names)
    assert "zero_grad()" in code["fits-loop"], "the default"
    first, second, *others = (max(points, key=lambda point: point.top).high for points in names["seen"].values())
    state = 2 * sum(p.nbytes for p in names["model"].parameters())
    assert all(first[name] == second[name] for name in first if name != "optimizer")
    assert first["optimizer"] == 0
    assert 0 <= second["optimizer"] - state < 1024, "and a count of steps for each tensor"
    assert all(peak == second for peak in others)
    assert printed.getvalue().splitlines()[:2] == "".join(CELLS["fits-loop"]["outputs"][0]["text"]).splitlines()[:2]
    # "Other" is as in its caption: two derivatives of 512 x 128 numbers, and that of the loss.
    assert abs(second["other"] - 2 * names["x"].nbytes) < 64


def test_the_line_to_move_lowers_the_peak_that_is_drawn() -> None:
    task = exercise("update_once")
    unchanged, right = stub_of(task.stub), stub_of(task.solution)
    before, after = (measure_update(update, SHOWN)[0] for update in (unchanged, right))
    assert [phase.name for phase in before.phases] == ["forward", "zero_grad", "backward", "step"]
    assert [phase.name for phase in after.phases] == ["zero_grad", "forward", "backward", "step"]
    for drawn, moment in ((before, "before backward"), (after, "before forward")):
        expected = measure_peak(replace(SHOWN, place=moment))
        assert (drawn.peak, drawn.where) == (expected.peak, expected.where)
        assert max(sum(phase.highest.values()) for phase in drawn.phases) == drawn.peak
    assert before.call == "forward"
    assert before.peak > after.peak
    alone = draw_update(unchanged).drawings[0]
    moved = draw_update(right).drawings[0]
    assert "At the start" not in alone.words
    assert "At the start it was 4.54 MiB, in forward" in moved.words

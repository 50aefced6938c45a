"""The line that a finding names is the line that the file has now."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

from gradlab.doctor import watch

KEEPS = """import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(24):
    optimizer.zero_grad()
    loss = model(torch.ones(1, 2)).square().sum()
    loss.backward()
    optimizer.step()
    losses.append(loss)  # here
"""
BY_HAND = """import torch
model = torch.nn.Linear(2, 1)
for _ in range(12):
    model(torch.ones(1, 2)).square().sum().backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad  # here
"""
NO_GRAD_YET = """import torch
p = torch.ones(2, requires_grad=True)
p.grad.norm()  # here
"""


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (KEEPS, "graph-retained-memory-leak"),
        (BY_HAND, "missing-zero-grad"),
        (NO_GRAD_YET, "grad-none-after-zero-grad"),
    ],
)
def test_a_file_that_was_edited_between_two_watches(source: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    for number, text in enumerate((source, "# one\n# two\n# three\n" + source, source)):
        path.write_text(text)
        os.utime(path, (number, number))  # a clock that is too coarse hides no edit
        try:
            with watch() as report:
                runpy.run_path(str(path), run_name="__main__")
        except AttributeError:
            assert code == "grad-none-after-zero-grad"
        (line,) = (at for at, one in enumerate(text.splitlines(), 1) if one.endswith("# here"))
        assert [(one.code, one.line) for one in report] == [(code, line)], report.text

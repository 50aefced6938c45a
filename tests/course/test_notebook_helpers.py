"""What notebooks 10 and 13 call in one line: times of lines, the doctor's command, a text run plainly."""

from __future__ import annotations

import json
import time

import pytest
import torch
from torch import nn

from gradlab import Recipe, Run, tasks
from gradlab.course import doctor_command, time_lines, weights_after


class Slow(nn.Linear):
    """A forward pass that takes 20 ms."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(0.02)
        return super().forward(x)


def test_the_slowest_line_has_the_largest_share() -> None:
    batches = [(torch.randn(4, 3), torch.randint(2, (4,))) for _ in range(5)]
    times = time_lines(Slow(3, 2), nn.functional.cross_entropy, batches)
    assert times.seconds["forward"] >= 0.02
    assert times.share("forward") > 0.5
    assert sum(times.share(line) for line in times.seconds) == pytest.approx(1)
    assert "forward" in repr(times)


SCRIPT = """import torch
w = torch.nn.Parameter(torch.zeros(2))
optimizer = torch.optim.SGD([w], lr=0.1)
for _ in range(10):
    (w - 1).square().sum().backward()
    optimizer.step()
"""


def test_the_doctors_command_prints_and_returns_what_the_shell_would() -> None:
    done = doctor_command(SCRIPT)
    assert done.code == 1
    assert "missing-zero-grad  at train.py:6" in done.printed
    told = json.loads(doctor_command(SCRIPT + "print('its own words')\n", "--json").printed)
    assert [finding["line"] for finding in told["findings"]] == [6]
    assert doctor_command(SCRIPT.replace("range(10):", "range(10):\n    optimizer.zero_grad()")).code == 0
    assert doctor_command(None).code == 2
    assert "no such file" in repr(doctor_command(None))
    with pytest.raises(ValueError, match="--json"):
        doctor_command(SCRIPT, "--yaml")


def test_a_text_run_plainly_gives_the_weights_of_a_run() -> None:
    task, recipe = tasks.line(), Recipe(lr=0.004, accumulate=2)
    run = Run(task, recipe)
    run.advance(updates=-(-len(task.batches) // 2))
    weights = torch.cat([p.detach().flatten() for p in run.model.parameters()])
    assert torch.equal(weights, weights_after(recipe.source(), task))
    assert not torch.equal(weights, weights_after(recipe.source(), task, batches=task.batches[:1]))

"""What the rules read in the learner's source: loops around a line, and how a schedule's length is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn, optim

from gradlab.doctor.listeners.schedulers import planned_length
from gradlab.doctor.source.blocks import loops_around
from gradlab.doctor.source.grad_lines import reads_gradient_of_an_input

PROGRAM = """\
def one_task(loader):
    for batch in loader:
        if batch:
            step(batch)
    else:
        done()
for task in tasks:
    for epoch in range(1, args.epochs + 1):
        one_task(task)
scheduler = sched.OneCycleLR(optimizer, 0.1, epochs=5,
    steps_per_epoch=len(loader))
def attack(x):
    loss.backward()
    return x + x.grad.sign()
def log():
    loss.backward()
    return sum(p.grad.norm() for p in net.parameters()) + net.fc.weight.grad.norm()
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def test_loops_are_found_through_calls(file):
    loops = loops_around(((file, 4), (file, 9)))
    assert [loop.words for loop in loops] == [
        "for batch in loader",
        "for epoch in range(1, args.epochs + 1)",
        "for task in tasks",
    ]
    assert [loop.conditional for loop in loops] == [True, False, False]
    assert [loop.through for loop in loops] == ["", "one_task", "one_task"]
    assert [loop.limits for loop in loops] == [set(), {"args.epochs + 1"}, set()]
    assert loops_around(((file, 9),)) == loops[1:]
    assert loops_around(((file, 6),)) == []  # the else of a loop is run once


def test_an_attack_is_told_from_a_norm_of_gradients(file):
    assert reads_gradient_of_an_input((file, 13))
    assert not reads_gradient_of_an_input((file, 16))


def test_a_plan_is_read_from_the_scheduler():
    def warmup(warmup_steps, max_steps):
        return lambda step: min(step / warmup_steps, 1 - step / max_steps)

    optimizer = optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
    kinds = optim.lr_scheduler
    assert planned_length(kinds.CosineAnnealingLR(optimizer, T_max=7)) == 7
    assert planned_length(kinds.OneCycleLR(optimizer, 0.1, epochs=3, steps_per_epoch=4)) == 12
    assert planned_length(kinds.MultiStepLR(optimizer, [4, 9])) == 9
    assert planned_length(kinds.LambdaLR(optimizer, warmup(5, 40))) == 40
    assert planned_length(kinds.ExponentialLR(optimizer, 0.9)) == 0
    parts = [kinds.LinearLR(optimizer, total_iters=5), kinds.CosineAnnealingLR(optimizer, T_max=20)]
    assert planned_length(kinds.SequentialLR(optimizer, parts, [5])) == 25

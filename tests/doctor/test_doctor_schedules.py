"""Schedules that are stepped after every batch or once an epoch, as they are made for or not."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
import torch

from gradlab.doctor import LiveDoctor, watch

LOOP = """\
import torch
from torch import nn
from torch.optim.lr_scheduler import *
EPOCHS = {epochs}
batches = [torch.randn(4, 2) for _ in range(12)]
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scheduler = {scheduler}
for epoch in range(EPOCHS):
    for x in batches:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        {batch}
    {epoch}
"""


def codes(scheduler: str, epochs: int, folder: Path, *, each_batch: bool) -> list[str]:
    path, steps = folder / "train.py", ("scheduler.step()", "pass")
    batch, epoch = steps if each_batch else reversed(steps)
    path.write_text(LOOP.format(epochs=epochs, scheduler=scheduler, batch=batch, epoch=epoch))
    with watch() as report:
        runpy.run_path(str(path))
    return report.codes


@pytest.mark.parametrize(
    ("scheduler", "epochs"),
    [
        ("StepLR(optimizer, step_size=3, gamma=0.5)", 10),
        ("ExponentialLR(optimizer, 0.95)", 8),
        ("CosineAnnealingLR(optimizer, EPOCHS, eta_min=1e-4)", 8),
        ("MultiStepLR(optimizer, [5, 8], gamma=0.3)", 10),
        ("LambdaLR(optimizer, lambda epoch: 0.9**epoch)", 10),
        ("SequentialLR(optimizer, [ConstantLR(optimizer, 0.1, 2), CosineAnnealingLR(optimizer, EPOCHS - 2)], [2])", 10),
    ],
)
def test_a_schedule_of_epochs_is_too_fast_for_batches(scheduler: str, epochs: int, tmp_path: Path) -> None:
    assert codes(scheduler, epochs, tmp_path, each_batch=True) == ["scheduler-cadence"]
    assert codes(scheduler, epochs, tmp_path, each_batch=False) == []


@pytest.mark.parametrize(
    ("scheduler", "epochs"),
    [
        ("OneCycleLR(optimizer, 0.1, total_steps=EPOCHS * len(batches))", 8),
        ("CosineAnnealingLR(optimizer, T_max=EPOCHS * len(batches))", 8),
        ("LinearLR(optimizer, 1.0, 0.01, total_iters=EPOCHS * len(batches))", 8),
    ],
)
def test_a_schedule_of_batches_gets_nowhere_in_epochs(scheduler: str, epochs: int, tmp_path: Path) -> None:
    assert codes(scheduler, epochs, tmp_path, each_batch=False) == ["scheduler-cadence"]
    assert codes(scheduler, epochs, tmp_path, each_batch=True) == []


@pytest.mark.parametrize(
    ("scheduler", "epochs"),
    [
        ("StepLR(optimizer, 30)", 10),  # counted in batches
        ("StepLR(optimizer, len(batches), gamma=0.5)", 14),  # whole epochs, counted in batches
        ("CosineAnnealingLR(optimizer, len(batches))", 14),
        ("CosineAnnealingLR(optimizer, 20)", 50),  # up and down on purpose
        ("CyclicLR(optimizer, 0.01, 0.1, step_size_up=10)", 20),
        ("MultiStepLR(optimizer, [60, 120, 180])", 20),
        ("LinearLR(optimizer, 0.1, 1.0, total_iters=5)", 20),  # a warm-up
        ("PolynomialLR(optimizer, EPOCHS * len(batches), 2.0)", 20),
    ],
)
def test_a_schedule_of_batches_is_left_alone(scheduler: str, epochs: int, tmp_path: Path) -> None:
    assert codes(scheduler, epochs, tmp_path, each_batch=True) == []


def test_a_schedule_of_epochs_may_end_early(tmp_path: Path) -> None:
    """After 3 of 36 epochs with 12 batches, 36 updates have run."""
    text = LOOP.format(
        epochs=36, scheduler="CosineAnnealingLR(optimizer, EPOCHS)", batch="pass", epoch="scheduler.step()"
    )
    (tmp_path / "train.py").write_text(text + "    if epoch == 2:\n        break\n")
    with watch() as report:
        runpy.run_path(str(tmp_path / "train.py"))
    assert report.codes == []


def test_a_step_at_every_twelfth_update_of_one_loop_is_too_rare(tmp_path: Path) -> None:
    """A schedule for 144 updates gets 12 steps, and the loop that does so has no epochs."""
    text = LOOP.format(epochs=1, scheduler="CosineAnnealingLR(optimizer, 144)", batch="pass", epoch="pass")
    flat = (
        text[: text.index("for epoch")].replace("range(12)", "range(144)")
        + """\
for i in range(144):
    optimizer.zero_grad()
    model(batches[i]).pow(2).mean().backward()
    optimizer.step()
    if i % 12 == 11:
        scheduler.step()
"""
    )
    (tmp_path / "train.py").write_text(flat)
    with watch() as report:
        runpy.run_path(str(tmp_path / "train.py"))
    assert report.codes == ["scheduler-cadence"]


def test_what_a_loop_counts_to_is_found_without_running_code(tmp_path):
    path = tmp_path / "train.py"
    counted = LOOP.replace("EPOCHS = {epochs}", "from counted import config").replace(
        "range(EPOCHS)", "range(config.epochs)"
    )
    path.write_text(counted.format(scheduler="StepLR(optimizer, 2)", batch="scheduler.step()", epoch="pass"))
    (tmp_path / "counted.py").write_text(
        "class Config:\n    asked = 0\n\n    @property\n    def epochs(self):\n        self.asked += 1\n"
        "        return 3\n\n\nconfig = Config()\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        with watch():
            names = runpy.run_path(str(path))
        del sys.modules["counted"]
    assert names["config"].asked == 1


def test_a_schedule_that_is_too_fast_is_told_while_it_runs() -> None:
    model, doctor = torch.nn.Linear(2, 1), LiveDoctor()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30)

    def train(*, scheduled: int) -> list[tuple[str, str]]:
        for batch in range(60):
            with doctor:
                (model(torch.ones(4, 2)).mean() / 4).backward()
                if batch % 4 == 3:
                    optimizer.step()
                    optimizer.zero_grad()
                if batch >= 3 and batch % scheduled == scheduled - 1:
                    scheduler.step()
        return [(finding.code, finding.evidence) for finding in doctor.findings()]

    assert train(scheduled=1) == [("scheduler-cadence", "56 steps of the scheduler, 14 of optimizer")]
    assert train(scheduled=4) == []  # mended

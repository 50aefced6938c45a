"""Points on interleaved spirals: which arm does each belong to?"""

from __future__ import annotations

import math

import torch
from torch import nn

from .._checks import LARGEST_SEED, number, whole_number
from .task import ClassRegions, Task, checked_device, split

DIFFICULTY = 3  # tasks are listed from the simplest to the hardest

TURN = 1.6  # how many times an arm crosses the gap to the next one on its way out: too far for straight lines


def spiral(
    arms: int = 3, points: int = 100, noise: float = 0.02, batch: int = 30, device: str = "auto", seed: int = 0
) -> Task:
    """Return the task of telling spiral arms apart: x (batch, 2) in about -1..1, y (batch,) the arm, 0 to arms - 1.

    A point of arm a lies at radius r = 0.1 .. 1 and angle 2 pi * (a + 1.6 r) / arms, plus normal noise. The model is an
    MLP 2-32-32-arms with tanh, the loss is the cross-entropy.

    arms: 2 or 3. points: 10 to 1,000 an arm. noise: standard deviation, 0 to 1, in the units of x.
    batch: points a batch, 1 to all of them; the last batch may be smaller. The order is fixed by `seed`.

    Raises TypeError or ValueError that names the field, the value and what is allowed.
    """
    arms = whole_number("spiral: arms", arms, 2, 3)
    points = whole_number("spiral: points", points, 10, 1000)
    batch = whole_number("spiral: batch", batch, 1, arms * points)
    noise = number("spiral: noise", noise, 0, 1)
    generator = torch.Generator().manual_seed(whole_number("spiral: seed", seed, 0, LARGEST_SEED))

    y = torch.arange(arms).repeat_interleave(points)
    radius = torch.linspace(0.1, 1.0, points).repeat(arms)
    angle = 2 * math.pi * (y + TURN * radius) / arms
    x = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    x += noise * torch.randn(x.shape, generator=generator)
    order = torch.randperm(len(x), generator=generator)
    x, y = x[order], y[order]

    def build(seed: int) -> nn.Module:
        return nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, arms))

    return Task(
        name="spiral",
        builder=build,
        batches=split(x, y, batch),
        loss_fn=nn.functional.cross_entropy,
        device=checked_device("spiral: device", device),
        title=f"{arms} spirals of points: a small network learns which point belongs to which",
        lr=0.5,
        picture=ClassRegions(x, y),
    )

"""A task of points in the plane, small enough to train in any test."""

from __future__ import annotations

import torch
from torch import nn

from gradlab.tasks import Task
from gradlab.tasks.task import split


def points(batch: int = 16) -> Task:
    """Return a task with three clouds of 100 points each, and a small network that classifies them."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(300) % 3
    x = torch.tensor([[0.0, 0.6], [-0.5, -0.3], [0.5, -0.3]])[y] + 0.2 * torch.randn(300, 2, generator=generator)

    def build(seed: int) -> nn.Module:
        return nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 3))

    return Task("points", build, split(x, y, batch), nn.functional.cross_entropy, title="Three clouds", lr=0.5)

"""The networks and losses whose gradients the loss scale instrument looks at."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from .... import tasks
from ....tasks import Task

TRAINED_FOR = 500
SMALL_WEIGHT = 1e-5
SUBJECTS = {
    "digits": "digits, before training",
    "trained": f"digits, after {TRAINED_FOR} updates",
    "weighted": "digits, loss x 0.00001",
    "sigmoids": "six sigmoid layers",
}
"""Name -> the words for a learner."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A model at one moment of its training, and what its loss is multiplied by."""

    task: Task
    model: nn.Module
    weight: float = 1.0


def make_subject(name: str) -> Subject:
    """Return the subject of this name, one of SUBJECTS; the same name gives the same weights."""
    digits = tasks.digits()
    if name == "sigmoids":
        deep = Task("sigmoids", _six_sigmoid_layers, digits.batches, digits.loss_fn, digits.device)
        return Subject(deep, deep.build(seed=0))
    model = digits.build(seed=0)
    if name == "trained":
        _train(digits, model)
    return Subject(digits, model, SMALL_WEIGHT if name == "weighted" else 1.0)


def _six_sigmoid_layers(seed: int) -> nn.Module:
    """Return a network for digits whose gradients shrink from layer to layer: a sigmoid's slope is at most 1/4."""
    hidden = [part for _ in range(6) for part in (nn.Linear(64, 64), nn.Sigmoid())]
    return nn.Sequential(*hidden, nn.Linear(64, 10))


def _train(task: Task, model: nn.Module) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for i in range(TRAINED_FOR):
        x, y = (part.to(task.device) for part in task.batches[i % len(task.batches)])
        optimizer.zero_grad()
        task.loss_fn(model(x), y).backward()
        optimizer.step()
    optimizer.zero_grad()

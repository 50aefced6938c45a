"""A run of `torch.amp.GradScaler`: the scale at each update, and the steps that it skipped."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch

from .gradients import DTYPES
from .subjects import Subject

WALK_UPDATES = 50


@dataclass(frozen=True)
class Walk:
    """What a scaler did: ``scales`` has the scale used by each update, and last the one for the update after them."""

    scales: tuple[float, ...]
    skipped: tuple[int, ...]
    """The updates, counted from 1, whose step was skipped because a gradient was inf or NaN."""
    growth_interval: int


def walk(subject: Subject, format: str, init_scale: float, growth_interval: int, updates: int = WALK_UPDATES) -> Walk:
    """Train a copy of the subject's model with SGD and a GradScaler."""
    task, model = subject.task, copy.deepcopy(subject.model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(task.device, init_scale=init_scale, growth_interval=growth_interval)
    scales, skipped = [init_scale], []
    for update in range(1, updates + 1):
        x, y = (part.to(task.device) for part in task.batches[(update - 1) % len(task.batches)])
        optimizer.zero_grad()
        with torch.autocast(task.device, DTYPES[format]):
            loss = task.loss_fn(model(x), y) * subject.weight
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        if scales[-1] < scales[-2]:  # update() lowers the scale only after a skipped step
            skipped.append(update)
    return Walk(tuple(scales), tuple(skipped), growth_interval)

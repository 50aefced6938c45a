"""The numbers of the loss scale: what a 16-bit backward pass makes of gradients, and a run of GradScaler."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ... import tasks
from ...tasks import Task

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


DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
FIRST, LAST = -46, 22
"""The powers of two that are counted, from 2**FIRST up to 2**LAST; what lies outside is counted at the ends."""

NUMBER_KINDS = ("zero", "subnormal", "normal", "overflow")
"""The kinds of numbers that a gradient can become: 0, fewer digits, all digits, inf or NaN."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The gradients of one batch at one loss scale: how large fp32 says they are, and what 16 bits made of them."""

    format: str
    scale: float
    counts: dict[str, Counts]
    """Kind -> how many gradients became it, for each power of two of scale x the fp32 gradient, FIRST first."""
    by_conversion: dict[str, int]
    """Kind -> how many would become it if the finished fp32 gradients times the scale were converted instead."""
    total: int
    """How many gradients are not 0 in fp32."""
    median: float
    """The size of the median fp32 gradient, not scaled."""
    error: float
    """Length of (16-bit gradient / scale - fp32 gradient) as a share of the fp32 gradient's; inf or NaN if it is."""

    def count(self, kind: str) -> int:
        """Return how many gradients became numbers of this kind."""
        return int(self.counts[kind].sum())


def gradients_of(subject: Subject, format: str | None, scale: float) -> Tensor:
    """Run a real forward and backward pass, the loss times ``scale``; return ``.grad`` as one row of fp32 numbers.

    format: "fp16" or "bf16" for autocast, None for fp32.
    """
    task, model = subject.task, subject.model
    x, y = (part.to(task.device) for part in task.batches[0])
    model.zero_grad()
    with torch.autocast(task.device, DTYPES[format or "fp16"], enabled=format is not None):
        loss = task.loss_fn(model(x), y)
    (loss * subject.weight * scale).backward()
    row = torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])
    model.zero_grad()
    return row


def outcome_of(exact: Tensor, got: Tensor, format: str, scale: float) -> Outcome:
    """Compare the gradients of a 16-bit backward pass with the fp32 ones of the same loss, not scaled."""
    there = exact != 0
    exact, got = exact[there], got[there]
    powers = torch.frexp(exact * scale).exponent.long() - 1  # 2**power <= size < 2**(power + 1)
    bins = powers.clamp(FIRST, LAST - 1) - FIRST
    counts = {
        kind: torch.bincount(bins[chosen], minlength=LAST - FIRST).cpu().numpy()
        for kind, chosen in _by_kind(got, format).items()
    }
    converted = _by_kind((exact * scale).to(DTYPES[format]).float(), format)
    error = ((got / scale).double() - exact.double()).norm() / exact.double().norm()
    return Outcome(
        format,
        scale,
        counts,
        {kind: int(chosen.sum()) for kind, chosen in converted.items()},
        len(exact),
        float(exact.abs().median()),
        float(error),
    )


@dataclass(frozen=True)
class NumberLine:
    """The positive numbers of a 16-bit type, by power of two."""

    format: str
    digits: tuple[int, ...]
    """How many binary digits its numbers have from 2**p up to 2**(p + 1), p from FIRST to LAST - 1; 0: it has none."""
    zero_below: int
    """What lies below 2 to the power of this is rounded to 0."""
    normal_from: int
    """From 2 to the power of this on, numbers have all their digits."""
    inf_from: int
    """From 2 to the power of this on, everything is inf."""


@cache
def number_line(format: str) -> NumberLine:
    """Return what a type can hold, found by looking at every number that it has."""
    dtype = DTYPES[format]
    numbers = torch.arange(1, 2**15, dtype=torch.int16).view(dtype).float()  # every pattern without the sign's bit
    powers = torch.frexp(numbers[numbers.isfinite()]).exponent.long() - 1
    least, most = int(powers.min()), int(powers.max())
    counts = torch.bincount(powers - least).tolist()  # 1, 2, 4, ... numbers in a doubling: 1, 2, 3, ... digits
    digits = {least + i: count.bit_length() for i, count in enumerate(counts)}
    normal = round(math.log2(torch.finfo(dtype).smallest_normal))
    row = tuple(digits.get(power, 0) for power in range(FIRST, LAST))
    return NumberLine(format, row, least - 1, normal, most + 1)


def _by_kind(values: Tensor, format: str) -> dict[str, Tensor]:
    """Return for each kind which of the values are of it."""
    size, finite = values.abs(), values.isfinite()
    zero, small = values == 0, size < torch.finfo(DTYPES[format]).smallest_normal
    return {"zero": zero, "subnormal": small & ~zero, "normal": finite & ~small, "overflow": ~finite}


SCALER_UPDATES = 50


@dataclass(frozen=True)
class ScalerRun:
    """What a scaler did: ``scales`` has the scale used by each update, and last the one for the update after them."""

    scales: tuple[float, ...]
    skipped: tuple[int, ...]
    """The updates, counted from 1, whose step was skipped because a gradient was inf or NaN."""
    growth_interval: int


def run_scaler(
    subject: Subject, format: str, init_scale: float, growth_interval: int, updates: int = SCALER_UPDATES
) -> ScalerRun:
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
    return ScalerRun(tuple(scales), tuple(skipped), growth_interval)

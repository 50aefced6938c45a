"""The numbers of the loss scale: what a 16-bit backward pass makes of gradients, and a run of GradScaler."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ... import tasks
from ...tasks import Task

WEIGHT = 1e-5
"""A factor of the loss, with which most gradients are too small for fp16."""
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
FIRST, LAST = -46, 22
"""The powers of two that are counted, from 2**FIRST up to 2**LAST; what lies outside is counted at the ends."""
NUMBER_KINDS = ("zero", "subnormal", "normal", "overflow")
"""The kinds of numbers that a gradient can become: 0, fewer digits, all digits, inf or NaN."""
SCALER_UPDATES = 50
INIT_SCALE = 65536.0
"""The default of ``GradScaler``."""

Counts = npt.NDArray[np.int64]


@cache
def digits_task() -> Task:
    """Return the task: real handwritten digits."""
    return tasks.digits()


@dataclass(frozen=True, eq=False)
class Outcome:
    """The gradients of one batch at one loss scale: how large fp32 says they are, and what 16 bits made of them."""

    format: str
    scale: float
    counts: dict[str, Counts]
    """Kind -> how many gradients became it, for each power of two of scale x the fp32 gradient, FIRST first."""
    total: int
    """How many gradients are not 0 in fp32."""
    error: float
    """Length of (16-bit gradient / scale - fp32 gradient) as a share of the fp32 gradient's; inf or NaN if it is."""

    def count(self, kind: str) -> int:
        """Return how many gradients became numbers of this kind."""
        return int(self.counts[kind].sum())


@cache
def gradients_of(format: str | None, scale: float) -> Tensor:
    """Run a real forward and backward pass, the loss times ``scale``; return ``.grad`` as one row of fp32 numbers.

    format: "fp16" or "bf16" for autocast, None for fp32.
    """
    task = digits_task()
    model = task.build(seed=0)
    x, y = (part.to(task.device) for part in task.batches[0])
    with torch.autocast(task.device, DTYPES[format or "fp16"], enabled=format is not None):
        loss = task.loss_fn(model(x), y)
    (loss * WEIGHT * scale).backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


@cache
def measure_outcome(format: str, scale: float) -> Outcome:
    """Compare the gradients of a 16-bit backward pass with the fp32 ones of the same loss, not scaled."""
    return outcome_of(gradients_of(None, 1.0), gradients_of(format, scale), format, scale)


def outcome_of(exact: Tensor, got: Tensor, format: str, scale: float) -> Outcome:
    """Compare gradients that 16 bits made with those of fp32, which are not scaled."""
    there = exact != 0
    exact, got = exact[there], got[there]
    powers = torch.frexp(exact * scale).exponent.long() - 1  # 2**power <= size < 2**(power + 1)
    bins = powers.clamp(FIRST, LAST - 1) - FIRST
    size, finite = got.abs(), got.isfinite()
    zero, small = got == 0, size < torch.finfo(DTYPES[format]).smallest_normal
    kinds = {"zero": zero, "subnormal": small & ~zero, "normal": finite & ~small, "overflow": ~finite}
    counts = {
        kind: torch.bincount(bins[chosen], minlength=LAST - FIRST).cpu().numpy() for kind, chosen in kinds.items()
    }
    error = ((got / scale).double() - exact.double()).norm() / exact.double().norm()
    return Outcome(format, scale, counts, len(exact), float(error))


def limits_of(format: str) -> tuple[int, int, int]:
    """Return the powers of two where a 16-bit type rounds to 0 below, has all digits from, and is inf from."""
    limits = torch.finfo(DTYPES[format])
    least, normal = (round(math.log2(x)) for x in (limits.smallest_normal * limits.eps, limits.smallest_normal))
    return least - 1, normal, math.floor(math.log2(limits.max)) + 1


@cache
def run_scaler(
    format: str, growth_interval: int, init_scale: float = INIT_SCALE
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Train the model of digits with SGD and a GradScaler.

    Returns the scale used by each update, with the one for the update after them, and the numbers of the updates,
    counted from 1, whose step was skipped because a gradient was inf or NaN.
    """
    task = digits_task()
    model: nn.Module = task.build(seed=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(task.device, init_scale=init_scale, growth_interval=growth_interval)
    scales, skipped = [init_scale], []
    for update in range(1, SCALER_UPDATES + 1):
        x, y = (part.to(task.device) for part in task.batches[(update - 1) % len(task.batches)])
        optimizer.zero_grad()
        with torch.autocast(task.device, DTYPES[format]):
            loss = task.loss_fn(model(x), y) * WEIGHT
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        if scales[-1] < scales[-2]:  # update() lowers the scale only after a skipped step
            skipped.append(update)
    return tuple(scales), tuple(skipped)

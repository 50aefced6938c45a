"""What a backward pass in 16 bits makes of each gradient, at one loss scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .subjects import Subject

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
FIRST, LAST = -46, 22
"""The powers of two that are counted, from 2**FIRST up to 2**LAST; what lies outside is counted at the ends."""

FATES = ("zero", "subnormal", "normal", "overflow")
"""What can become of a gradient: 0, fewer digits, all digits, inf or NaN."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The gradients of one batch at one loss scale: how large fp32 says they are, and what 16 bits made of them."""

    format: str
    scale: float
    counts: dict[str, Counts]
    """Fate -> how many gradients it met, for each power of two of scale x the fp32 gradient, FIRST first."""
    by_conversion: dict[str, int]
    """Fate -> how many it would meet if the finished fp32 gradients times the scale were converted instead."""
    total: int
    """How many gradients are not 0 in fp32."""
    median: float
    """The size of the median fp32 gradient, not scaled."""
    error: float
    """Length of (16-bit gradient / scale - fp32 gradient) as a share of the fp32 gradient's; inf or NaN if it is."""

    def count(self, fate: str) -> int:
        """Return how many gradients met this fate."""
        return int(self.counts[fate].sum())

    def share(self, fate: str) -> float:
        """Return the same as a share of all."""
        return self.count(fate) / self.total


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


def compare_gradients(exact: Tensor, got: Tensor, format: str, scale: float) -> Outcome:
    """Compare the gradients of a 16-bit backward pass with the fp32 ones of the same loss, not scaled."""
    there = exact != 0
    exact, got = exact[there], got[there]
    powers = torch.frexp(exact * scale).exponent.long() - 1  # 2**power <= size < 2**(power + 1)
    bins = powers.clamp(FIRST, LAST - 1) - FIRST
    counts = {
        fate: torch.bincount(bins[chosen], minlength=LAST - FIRST).cpu().numpy()
        for fate, chosen in _fates(got, format).items()
    }
    converted = _fates((exact * scale).to(DTYPES[format]).float(), format)
    error = ((got / scale).double() - exact.double()).norm() / exact.double().norm()
    return Outcome(
        format,
        scale,
        counts,
        {fate: int(chosen.sum()) for fate, chosen in converted.items()},
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


def _fates(values: Tensor, format: str) -> dict[str, Tensor]:
    """Return for each fate which of the values met it."""
    size, finite = values.abs(), values.isfinite()
    zero, small = values == 0, size < torch.finfo(DTYPES[format]).smallest_normal
    return {"zero": zero, "subnormal": small & ~zero, "normal": finite & ~small, "overflow": ~finite}

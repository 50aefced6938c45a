"""What the loss scale instrument says, with its numbers."""

from __future__ import annotations

import math

from ....drawing import SUPERSCRIPTS
from .gradients import Outcome
from .subjects import Subject
from .walk import Walk

ZONES = {
    "zero": ("become 0", "0"),
    "subnormal": ("fewer digits", "fewer"),
    "normal": ("keep all digits", "all digits", "all"),
    "overflow": ("inf or NaN", "inf"),
}
"""Fate -> its words, from long to short."""


def scale_text(scale: float) -> str:
    """Write a scale in full up to a million, and a larger power of two as a power."""
    mantissa, power = math.frexp(scale)
    large = mantissa == 0.5 and not 1 <= scale < 1e6
    return f"2{str(power - 1).translate(SUPERSCRIPTS)}" if large else f"{scale:,g}"


def part_text(count: int, total: int) -> str:
    """Write a share in percent; what is neither none nor all is never written as 0% or 100%."""
    share = count / total
    if count in (0, total):
        return f"{share:.0%}"
    return f"{share:.2%}" if min(share, 1 - share) < 0.001 else f"{share:.1%}"


def outcome_words(outcome: Outcome) -> str:
    """Say how many gradients are lost, and how far off the whole gradient is."""
    zero, fewer, overflow = (
        f"{count:,} ({part_text(count, outcome.total)})" if (count := outcome.count(fate)) else "none"
        for fate in ("zero", "subnormal", "overflow")
    )
    said = (
        f"{outcome.format}, loss scale {scale_text(outcome.scale)}: of {outcome.total:,} gradients, {zero} become 0, "
        f"{fewer} have fewer digits, and {overflow} become inf or NaN."
    )
    if math.isfinite(outcome.error):
        off = f"{outcome.error:.2%}" if outcome.error < 0.1 else f"{outcome.error:.0%}"
        said += f" Divided by the scale, they differ from the fp32 gradient by {off} of its length."
    return said


def conversion_words(outcome: Outcome) -> str:
    """Say what converting the finished fp32 gradients would lose, where the backward pass loses another number."""
    zero, overflow = (outcome.by_conversion[fate] for fate in ("zero", "overflow"))
    if (zero, overflow) == (outcome.count("zero"), outcome.count("overflow")):
        return ""
    zeros, infinite = (f"{count:,}" if count else "none" for count in (zero, overflow))
    return f"Converting the finished fp32 gradients would make {zeros} of them 0 and {infinite} inf. "


CONVERSION_NOTE = (
    "Converting the finished gradients gives other numbers than the backward pass: there the gradients between the "
    "layers are 16 bits wide, too."
)


def walk_words(walk: Walk, update: int) -> str:
    """Say where the scaler stands after an update, and which steps it has skipped."""
    skipped = [each for each in walk.skipped if each <= update]
    which = f" ({', '.join(map(str, skipped))})" if skipped else ""
    return (
        f"GradScaler, after update {update}: loss scale {scale_text(walk.scales[update])}; "
        f"{len(skipped)} of {update} steps skipped{which}."
    )


def code_text(subject: Subject, format: str, scale: float, init_scale: float, growth_interval: int) -> str:
    """Return the plain PyTorch that was run for both panels; it uses model, loss_fn, batches and device."""
    dtype = {"fp16": "torch.float16", "bf16": "torch.bfloat16"}[format]
    weight = f" * {subject.weight:g}" if subject.weight != 1 else ""
    return f"""\
# gradients x loss scale: one backward pass
x, y = batches[0]
with torch.autocast(device, {dtype}):
    loss = loss_fn(model(x), y){weight}
(loss * {scale}).backward()

# GradScaler: a loop
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler(device, init_scale={init_scale}, growth_interval={growth_interval})
for x, y in batches:
    optimizer.zero_grad()
    with torch.autocast(device, {dtype}):
        loss = loss_fn(model(x), y){weight}
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""

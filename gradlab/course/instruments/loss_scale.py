"""The loss scale instrument: how many gradients fp16 or bf16 loses at a scale, and how GradScaler sets the scale."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ... import tasks
from ...drawing import AXES_EDGE, Axes, Axis, Band, Dots, Drawing, Line, Text, points, power_axis, step_points
from ...formatting import number_of, power_text
from ...widgets import Control, Instrument, Settings, View

WEIGHT = 1e-5  # the loss is multiplied by this, which makes most gradients too small for fp16
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
FIRST, LAST = -46, 22  # exponents of 2 at the ends of the histogram; gradients outside count in the first or last bin
ZONES = {"zero": "become 0", "subnormal": "fewer digits", "normal": "keep all digits", "overflow": "inf or NaN"}
"""Kind of number that a gradient can become in 16 bits -> label."""
_SHORT = {"subnormal": "fewer", "overflow": "inf"}
SCALER_UPDATES = 50
INIT_SCALE = 65536.0  # the default of GradScaler's ``init_scale``

digits_task = cache(tasks.digits)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The 16-bit gradients of one batch at one loss scale, counted by kind and by size in fp32."""

    format: str
    scale: float
    counts: dict[str, npt.NDArray[np.int64]]  # kind -> gradients per bin, by the exponent of scale x fp32 gradient
    total: int  # the number of gradients that are not 0 in fp32
    error: float  # norm of (16-bit gradient / scale - fp32 gradient) / norm of fp32 gradient; inf or NaN on overflow

    def count(self, kind: str) -> int:
        """Return the number of gradients of ``kind``, which is a key of ZONES."""
        return int(self.counts[kind].sum())


@cache
def gradients_of(format: str | None, scale: float) -> Tensor:
    """Return all gradients of loss x WEIGHT x ``scale`` as one 1-D tensor, computed in fp32 if ``format`` is None."""
    task = digits_task()
    model = task.build(seed=0)
    x, y = (part.to(task.device) for part in task.batches[0])
    with torch.autocast(task.device, DTYPES[format or "fp16"], enabled=format is not None):
        loss = task.loss_fn(model(x), y)
    (loss * WEIGHT * scale).backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


@cache
def measure_outcome(format: str, scale: float) -> Outcome:
    """Return the Outcome of a 16-bit backward pass at ``scale``, compared with the unscaled fp32 gradients."""
    exact, got = gradients_of(None, 1.0), gradients_of(format, scale)
    exact, got = exact[exact != 0], got[exact != 0]
    powers = torch.frexp(exact * scale).exponent.long() - 1  # 2**power <= abs(exact * scale) < 2**(power + 1)
    bins = powers.clamp(FIRST, LAST - 1) - FIRST
    size, finite = got.abs(), got.isfinite()
    zero, small = got == 0, size < torch.finfo(DTYPES[format]).smallest_normal
    kinds = {"zero": zero, "subnormal": small & ~zero, "normal": finite & ~small, "overflow": ~finite}
    counts = {kind: torch.bincount(bins[mask], minlength=LAST - FIRST).cpu().numpy() for kind, mask in kinds.items()}
    error = ((got / scale).double() - exact.double()).norm() / exact.double().norm()
    return Outcome(format, scale, counts, len(exact), float(error))


def limits_of(format: str) -> tuple[int, int, int]:
    """Return three exponents of 2: the upper ends of the zones "zero", "subnormal" and "normal" of ``format``."""
    limits = torch.finfo(DTYPES[format])
    least, normal = (round(math.log2(x)) for x in (limits.smallest_normal * limits.eps, limits.smallest_normal))
    return least - 1, normal, math.floor(math.log2(limits.max)) + 1


@cache
def run_scaler(
    format: str, growth_interval: int, init_scale: float = INIT_SCALE
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Train the digits model with SGD, autocast in ``format``, and a GradScaler.

    Returns the loss scale of each update, followed by the scale for the next one, and the numbers (from 1) of the
    updates whose step was skipped because a gradient was inf or NaN.
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


_SCALES = [2**power for power in range(41)]  # at the largest of these scales, fp16 gradients overflow
_GROWTH_INTERVALS = [2, 5, 10, 2000]
_SUBJECT = "digits, loss x 0.00001"
_STYLES: dict[str, dict[str, Any]] = {
    "zero": {"fill": "wrong/60", "stroke": "wrong", "hatch": "//"},
    "subnormal": {"fill": "gradients/35", "stroke": "gradients", "hatch": ".."},
    "normal": {"fill": "gradients", "stroke": "ink"},
    "overflow": {"fill": "wrong/60", "stroke": "wrong", "hatch": "\\\\"},
}
_ZONE_FILLS = {"zero": "grey/30", "subnormal": "grey/12", "overflow": "grey/30"}
_HEADROOM = 1.3  # height of the axes relative to the highest bin, which leaves room for the zones' labels
_ROOM_FOR_UNSCALED = 10  # exponent of the lowest loss scale whose histogram is clear of the one at scale 1


class LossScale(Instrument):
    """A histogram of gradients at a loss scale, with the limits of fp16 or bf16, and the scales set by GradScaler."""

    title = "The loss scale"

    def controls(self) -> list[Control]:
        """Return the controls for the 16-bit dtype, the loss scale, the growth interval and the update."""
        return [
            Control.choice("dtype", "autocast", "fp16", list(DTYPES)),
            Control.slider("scale", "loss scale", 1, _SCALES, text=scale_text),
            Control.choice("growth_interval", "growth_interval", 2, [(f"{n:,}", n) for n in _GROWTH_INTERVALS]),
            Control.slider("update", "update", SCALER_UPDATES, list(range(SCALER_UPDATES + 1)), plays=True),
        ]

    def render(self, settings: Settings) -> View:
        """Return a View with the histogram of gradients and the GradScaler run for ``settings``."""
        dtype, scale, interval, update = (settings[name] for name in ("dtype", "scale", "growth_interval", "update"))
        outcome = measure_outcome(dtype, scale)
        scales, every = run_scaler(dtype, interval)
        skipped = [each for each in every if each <= update]
        panels = {"gradients": draw_gradients(outcome), "scaler": draw_scaler_run(scales, skipped, update, interval)}
        which = f" ({', '.join(map(str, skipped))})" if skipped else ""
        text = f"{_outcome_text(outcome)} GradScaler, after update {update}: loss scale {scale_text(scales[update])}; "
        text += f"{len(skipped)} of {update} steps skipped{which}."
        return View(panels, text, code=_code_text(dtype, scale, interval))

    def recorded(self) -> Iterable[Settings]:
        """Yield the settings to record: every scale with each dtype, and every update with each growth interval."""
        for dtype in DTYPES:
            yield from ({"dtype": dtype, "scale": scale} for scale in _SCALES)
        for interval in _GROWTH_INTERVALS:
            yield from ({"growth_interval": interval, "update": update} for update in range(SCALER_UPDATES + 1))


def loss_scale(**start: Any) -> LossScale:
    """Return a LossScale; ``dtype``, ``scale``, ``growth_interval`` and ``update`` set the controls' start values."""
    return LossScale(**start)


def _outcome_text(outcome: Outcome) -> str:
    zero, fewer, overflow = (
        f"{count:,} ({part_text(count, outcome.total)})" if (count := outcome.count(kind)) else "none"
        for kind in ("zero", "subnormal", "overflow")
    )
    text = f"{outcome.format}, loss scale {scale_text(outcome.scale)}: of {outcome.total:,} gradients, "
    text += f"{zero} become 0, {fewer} have fewer digits, and {overflow} become inf or NaN."
    if math.isfinite(outcome.error):
        off = f"{outcome.error:.2%}" if outcome.error < 0.1 else f"{outcome.error:.0%}"
        text += f" Divided by the scale, they differ from the fp32 gradient by {off} of its length."
    return text


def _code_text(format: str, scale: float, growth_interval: int) -> str:
    dtype = DTYPES[format]
    return f"""\
# gradients x loss scale: one backward pass
x, y = batches[0]
with torch.autocast(device, {dtype}):
    loss = loss_fn(model(x), y) * {WEIGHT:g}
(loss * {scale}).backward()

# GradScaler: a loop
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler(device, init_scale={INIT_SCALE:.0f}, growth_interval={growth_interval})
for x, y in batches:
    optimizer.zero_grad()
    with torch.autocast(device, {dtype}):
        loss = loss_fn(model(x), y) * {WEIGHT:g}
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


def scale_text(scale: float) -> str:
    """Return a loss scale as text, with an exponent if it is a power of two below 1 or over a million."""
    mantissa, power = math.frexp(scale)
    large = mantissa == 0.5 and not 1 <= scale < 1e6
    return power_text(power - 1) if large else f"{scale:,g}"


def part_text(count: int, total: int) -> str:
    """Return ``count / total`` as a percentage, which is "0%" or "100%" only if that is exact."""
    share = count / total
    if count in (0, total):
        return f"{share:.0%}"
    return f"{share:.2%}" if min(share, 1 - share) < 0.001 else f"{share:.1%}"


def draw_gradients(outcome: Outcome) -> Drawing:
    """Draw a histogram of the gradients' sizes, coloured by kind, in front of the zones of the dtype."""
    scale = scale_text(outcome.scale)
    shares = {kind: outcome.counts[kind] / outcome.total * 100 for kind in ZONES}
    steps = np.sum(list(shares.values()), axis=0)
    bands = []
    below = np.zeros(LAST - FIRST)
    for kind, share in shares.items():
        if share.any():
            label = f"{outcome.count(kind):,} gradients: {ZONES[kind]}"
            bands.append(Band(f"gradients {kind}", _stairs(below, share), words=label, **_STYLES[kind]))
        below = below + share
    marks = [*_zone_marks(outcome), *_unscaled_marks(steps, round(math.log2(outcome.scale))), *bands]
    across = Axis(FIRST, LAST, words="size of gradient \u00d7 loss scale (log2 axis)", ticks="powers")
    up = Axis(0.0, math.ceil(steps.max() * _HEADROOM / 5) * 5.0, words="gradients (%)")
    counts = ", ".join(f"{label}: {outcome.count(kind):,}" for kind, label in ZONES.items())
    description = f"{outcome.total:,} gradients of {_SUBJECT}, times {scale}, in {outcome.format}. {counts}."
    corner = f"{outcome.format}, loss scale {scale}", f"loss scale {scale}", scale
    return Drawing(_SUBJECT, marks, (Axes(across, up),), description, corner, corner_role="scale-text")


def _zone_marks(outcome: Outcome) -> list[Band | Text]:
    """Return labels with each zone's name and share of the gradients, and a band for each zone except "normal"."""
    marks: list[Band | Text] = []
    edges = np.clip((FIRST, *limits_of(outcome.format), LAST), FIRST, LAST).tolist()
    for kind, low, high in zip(ZONES, edges, edges[1:], strict=False):
        if high <= low:  # the zone is outside the axis
            continue
        if kind != "normal":
            triples = (low, -AXES_EDGE, AXES_EDGE, high, -AXES_EDGE, AXES_EDGE)
            marks.append(Band(f"zone {kind}", triples, fill=_ZONE_FILLS[kind]))
        count = outcome.count(kind)
        share, role = part_text(count, outcome.total), "wrong" if count and kind in ("zero", "overflow") else "ink"
        for id, text in (("share", share), ("word", _SHORT.get(kind, ZONES[kind]))):
            style: dict[str, Any] = {"where": "below", "role": role, "bold": id == "share"}
            marks.append(Text(f"zone {id} {kind}", (text,), (low + high) / 2, AXES_EDGE, **style))
    return marks


def _stairs(below: npt.NDArray[np.float64], share: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return a stepped band from the first to the last bin with gradients, as x, lower edge and upper edge by turns."""
    some = np.flatnonzero(share)
    part = slice(some[0], some[-1] + 1)
    edges = np.arange(some[0], some[-1] + 2.0) + FIRST
    return points(np.repeat(edges, 2)[1:-1], np.repeat(below[part], 2), np.repeat((below + share)[part], 2))


def _unscaled_marks(steps: npt.NDArray[np.float64], moved: int) -> list[Line | Text]:
    """Return a labelled outline of the unscaled histogram, ``moved`` bins to the left, or [] if it would overlap."""
    if moved < _ROOM_FOR_UNSCALED:
        return []
    corners = _stairs(np.zeros(len(steps) - moved), steps[moved:]).reshape(-1, 3)
    outline = np.concatenate([corners[0, :2], corners[:, ::2].ravel(), corners[-1, :2]])
    label, half = "the same gradients at loss scale 1", corners[:, 2].max() / 2
    x = corners[corners[:, 2] >= half, 0].min()
    return [
        Line("unscaled", outline, width=1.2, dash="dashed", words=label),
        Text("unscaled words", ("loss scale 1",), x, half, where="left", size=11.0),
    ]


def draw_scaler_run(scales: tuple[float, ...], skipped: list[int], update: int, growth_interval: int) -> Drawing:
    """Draw the loss scale up to ``update`` as a staircase, with a cross at each skipped optimizer step."""
    interval, now = f"growth_interval {growth_interval:,}", scale_text(scales[update])
    powers = np.log2(scales)
    # Update n uses scales[n - 1], which is drawn from x = n - 1 to x = n.
    path = step_points(np.arange(update + 1.0), powers[: update + 1])
    marks: list[Line | Dots] = [Line("scale", path, "scale", 3.0, words=f"the loss scale, {now} now")]
    if skipped:
        reason = "skipped: a gradient was inf or NaN, so the weights stay and the scale is halved"
        crosses = points(skipped, powers[np.array(skipped) - 1])
        marks.append(Dots("skipped", crosses, "cross", 10.0, stroke="wrong", width=2.4, words=reason))
    marks.append(Dots("now", path[-2:], size=8.0, fill="scale", stroke="ink", words=f"now {now}"))
    across = Axis(0.0, SCALER_UPDATES, words="updates", ticks="updates")
    axes = Axes(across, power_axis(powers, "loss scale (log2 axis)"))
    description = f"After update {update}, with {interval}, the loss scale is {now}; "
    description += f"{len(skipped)} of {update} steps were skipped."
    corner = f"scale {now}, {number_of(len(skipped), 'step')} skipped", f"{now}, {len(skipped)} skipped", now
    return Drawing(f"GradScaler, {interval}", marks, (axes,), description, corner)

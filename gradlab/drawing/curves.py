"""Curves over updates: the loss of one run, the losses of several runs, and the loss scale."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from itertools import cycle
from typing import Any

import numpy as np

from ..formatting import number_of, short
from ..scenes import Curve, ScalerHistory, UnswitchedCurve
from .limits import LARGEST_DRAWN, Numbers, from_zero, numbers, points, value_axis
from .marks import AXES_EDGE, DASHES, Axes, Axis, Band, Dots, Drawing, Line, Mark, Text, draw

NEWEST = 6  # number of newest changes of switches that have a label; older changes have only a dashed line
_MAX_SWITCH_LINES = 40  # number of newest changes of switches that have a dashed line
_SWITCH_ROOM = 1.3  # least upper limit of the x axis, in units of the newest change's update, so that its label fits
_FIRST_ROOM = 1.2  # length of a new loss axis, in units of the length that the losses need


@draw.register
def draw_loss(scene: Curve) -> Drawing:
    """Draw the loss up to its first inf or NaN, changes of switches, and the loss without the newest change (dashed).

    The y axis fits the loss of the run. If the dashed curve ends above the axis, its last value is at the top.
    """
    x, mean, low, high = (numbers(part) for part in (scene.updates, scene.mean, scene.low, scene.high))
    shown = np.isfinite(x) & np.isfinite(mean) & (x <= (math.inf if scene.broken is None else scene.broken))
    x, mean, low, high = x[shown], mean[shown], low[shown], high[shown]
    low, high = (np.where(np.isfinite(edge), edge, mean) for edge in (low, high))
    now = scene.now if scene.broken is None else math.nan
    other_x, other = _finite_points(scene.unswitched or Curve([], [], [], []))
    up = _loss_axis(np.concatenate([high[:1], mean, low, high, [now] if math.isfinite(now) else []]))
    switched = (_SWITCH_ROOM * update for update, _ in scene.switches[-1:])
    newest = [*x[-1:], *other_x[-1:], *switched, scene.broken or 0]
    across = Axis(0.0, from_zero(float(max(newest))), words="updates", ticks="updates")
    marks: list[Mark] = [
        Band("spread", points(x, low, high), fill="grey/33"),
        Line("loss", points(x, mean), stroke="loss", width=1.8, readout="update {x}: loss {y}"),
    ]
    if len(x) and math.isfinite(now):
        marks.append(Dots("now", (float(x[-1]), now), size=7.0, fill="loss", words=f"the newest loss: {short(now)}"))
    beside: tuple[str, ...] = ()
    if (copy := scene.unswitched) is not None and len(other):
        readout = f"update {{x}}: {{y}} had you left {copy.switched}"
        marks.append(Line("without", points(other_x, other), "grey-text", 1.6, "dashed", readout=readout))
        value, until = short(float(other[-1])), f" at update {copy.updates[-1]:,.0f}" if copy.ended else ""
        beside = f"{value}{until}, had you left {copy.switched}", f"{value}{until}, {copy.switched}", value
        if other[-1] > up.high:
            style: dict[str, Any] = {"where": "top", "role": "grey-text", "backed": True}
            marks.append(Text("without name", (f"{value} \u2191",), float(other_x[-1]), **style))
    switches = list(enumerate(scene.switches[-_MAX_SWITCH_LINES:]))
    for number, (update, label) in switches:
        marks.append(_upright(f"switch {number}", update, "dashed", f"update {update:,}: {label}"))
    for number, (update, label) in reversed(switches[-NEWEST:]):  # the newest label gets its position first
        marks.append(Text(f"switch name {number}", (label,), float(update), where="top", backed=True))
    summary, corner = _describe_loss(scene, x, low, high), [f"now {short(now)}"] if math.isfinite(now) else []
    corner = [" \u00b7 ".join([*corner, f"dashed: {text}"]) for text in beside] + corner
    notice = "" if scene.broken is None else f"inf or NaN from update {scene.broken:,}"
    return Drawing(scene.title, marks, (Axes(across, up, zooms=True),), summary, corner=tuple(corner), notice=notice)


def _loss_axis(values: Numbers) -> Axis:
    """Return the y axis for losses, the oldest first. A linear axis grows by doubling, so that it rarely changes."""
    if not len(values) or values.min() < 0 or values.max() > _LOG_FROM * values[0]:
        return value_axis(values, _FIRST_ROOM, log_from=_LOG_FROM, title="loss")
    high = from_zero(float(values[0]) * _FIRST_ROOM)
    doublings = math.log2(max(float(values.max()), high)) - math.log2(high)
    return Axis(0.0, min(math.ldexp(high, math.ceil(doublings)), LARGEST_DRAWN), words="loss")


def _finite_points(curve: Curve | UnswitchedCurve, until: float = math.inf) -> tuple[Numbers, Numbers]:
    x, mean = numbers(curve.updates), numbers(curve.mean)
    shown = np.isfinite(x) & np.isfinite(mean) & (x <= until)
    return x[shown], mean[shown]


def _upright(id: str, x: float, dash: str, label: str = "") -> Line:
    return Line(id, (float(x), -AXES_EDGE, float(x), AXES_EDGE), "grey", 1.2, dash, label)


def _describe_loss(scene: Curve, x: Numbers, low: Numbers, high: Numbers) -> str:
    end = f"The {scene.title} is {short(scene.now)} now." if math.isfinite(scene.now) else ""
    end = end if scene.broken is None else f"The {scene.title} is inf or NaN from update {scene.broken:,}."
    if not len(x):
        return end or "No update has been made yet."
    reach = f"Updates {x[0]:,.0f} to {x[-1]:,.0f}: the loss lies between {short(low.min())} and {short(high.max())}."
    sentences = [end, reach, *(f"Switched at update {update:,}: {label}." for update, label in scene.switches[-1:])]
    if (other := scene.unswitched) is not None:
        was = f"was {short(other.now)} at update {other.updates[-1]:,.0f}; {other.ended}."
        outcome = was if other.ended else f"would be {short(other.now)} now."
        sentences.append(f"Had you left {other.switched}, the {scene.title} {outcome}")
    return " ".join(filter(None, sentences))


# Each curve has a colour, dashes and a name at its end. Runs that apply gradients again have the colour "reused"; the
# other runs have none of the colours that mean weights, gradients or memory.
_PLAIN_LINES = list(zip(("loss", "grey") * 4, ("", *DASHES[1:], "dashed", "", "dashdot"), strict=False))
_REUSED_LINES = [("reused", dash) for dash in (*DASHES[1:], "")]
_LOG_FROM = 300.0  # ratio of the largest loss to the smallest (in draw_loss, the first) that needs a logarithmic axis
_MAX_DIVERGED_HEIGHT = 3.0  # largest loss of a diverged run on the axis, in units of the other runs' largest loss


def draw_comparison(
    curves: Mapping[str, Curve],
    title: str = "loss",
    *,
    reused: Collection[str] = (),
    events: Mapping[int, str] | None = None,
    counted: str = "updates",
    y: str = "loss",
    ends: bool = True,
) -> Drawing:
    """Return a Drawing of the losses of several runs, with their names and, if ``ends`` is True, their newest losses.

    A diverged run is labelled with the first update whose loss is inf or NaN, and its curve may leave the picture.

    Args:
        curves: the curve of each run, by the run's name.
        reused: the names of the runs that apply gradients again.
        events: labels by update; each of these updates is marked with a dotted line.
        title, counted, y: titles of the Drawing, the x axis and the y axis.
    """
    lines = {name: _finite_points(curve, curve.broken or math.inf) for name, curve in curves.items()}
    converging = [values for name, (_, values) in lines.items() if curves[name].broken is None and len(values)]
    ceiling = _MAX_DIVERGED_HEIGHT * max((float(values.max()) for values in converging), default=np.inf)
    heights = np.concatenate([values[values <= ceiling] for _, values in lines.values()] or [np.zeros(0)])
    up = value_axis(heights, log_from=_LOG_FROM, title=y)
    last = max((float(x[-1]) for x, _ in lines.values() if len(x)), default=0.0)
    across = Axis(0.0, last if last > 0 else from_zero(last), words=counted, ticks="updates")
    marks, labels = list[Mark](), list[str]()
    styles = {True: cycle(_REUSED_LINES), False: cycle(_PLAIN_LINES)}
    for number, (name, (x, values)) in enumerate(lines.items()):
        role, dash = next(styles[name in reused])
        curve = curves[name]
        newest = curve.now if math.isfinite(curve.now) else float(values[-1]) if len(values) else math.nan
        end = f"inf at {curve.broken:,}" if curve.broken is not None else short(newest) if len(values) and ends else ""
        readout = f"{name}, update {{x}}: {y} {{y}}"
        marks.append(Line(f"curve {number}", points(x, values), role, 2.0, dash, readout=readout))
        texts = f"{name}: {end}" if curve.broken is not None else f"{name} {end}".strip(), name
        labels.append(f"{name} {end}".strip())
        right, height = (float(x[-1]), float(values[-1])) if len(x) else (0.0, up.low)
        style: dict[str, Any] = {"role": role if role == "loss" else f"{role}-text", "size": 13.0, "bold": True}
        style["where"] = "margin" if right >= last / 2 else "right around"  # label a curve that ends early at its end
        marks.append(Text(f"name {number}", texts, right, height, **style))
    for update, event in (events or {}).items():
        marks.append(_upright(f"event {update}", update, "dotted"))
        marks.append(Text(f"event {update} word", (event,), float(update), where="top", role="grey", backed=True))
    return Drawing(title, marks, (Axes(across, up),), f"{title}: {'; '.join(labels) or 'nothing was run'}.")


@draw.register
def draw_scaler(scene: ScalerHistory) -> Drawing:
    """Draw the loss scale, with crosses at skipped steps, above the share of gradients that underflow unscaled."""
    x, scale, share = numbers(scene.updates), numbers(scene.scale), numbers(scene.underflow)
    count = min(len(x), len(scale), len(share))
    x, scale, share = x[:count], scale[:count], share[:count]
    finite = np.isfinite(x) & np.isfinite(scale) & (scale > 0)
    update, power = x[finite], np.log2(scale[finite])
    skipped = numbers(scene.skipped)
    across = from_zero(max([*x[np.isfinite(x)][-1:].tolist(), *skipped[-1:].tolist()], default=0.0))
    label = f"the loss scale, {short(float(scale[finite][-1]))} now" if len(update) else ""
    marks: list[Mark] = [Line("scale", step_points(update, power), "scale", 2.4, words=label)]
    if len(skipped) and len(update):
        crosses = points(skipped, np.interp(skipped, update, power))
        marks.append(Dots("skipped", crosses, "cross", 9.0, stroke="wrong", width=2.2, words="skipped steps"))
    measured = np.isfinite(x) & np.isfinite(share)
    shares = points(x[measured], np.clip(share[measured], 0, 1))
    readout = "update {x}: a share of {y} would be 0"
    marks.append(Line("underflow", shares, "gradients", 2.0, "dashed", readout=readout, axes=1))
    upper = Axes(Axis(0.0, across, ticks="lines"), power_axis(power))
    updates, caption = Axis(0.0, across, words="updates", ticks="updates"), "would underflow without scaling"
    lower = Axes(updates, Axis(ticks="shares"), share=0.25, caption=caption)
    skips = number_of(len(skipped), "step") if len(skipped) else ""
    description = "There is no loss scale yet."
    if len(update):
        were = f"{skips or 'no step'} {'were' if len(skipped) > 1 else 'was'} skipped"
        under = f", and {share[measured][-1]:.1%} of the gradient would be 0 without it" if measured.any() else ""
        description = f"The loss scale is {scale[finite][-1]:,.6g}; {were}{under}."
    corner = (f"\u00d7 {skips} skipped",) if skips else ()
    return Drawing("loss scale", marks, (upper, lower), description, corner=corner, corner_role="wrong")


def step_points(x: Numbers, y: Numbers) -> Numbers:
    """Return the corners x0, y0, x1, y1, ... of a step function in which each value of ``y`` holds until the next."""
    if len(x) < 2:
        return points(x, y)
    changed = np.flatnonzero(y[1:] != y[:-1]) + 1
    corners = np.concatenate([x[:1], np.repeat(x[changed], 2), x[-1:]])
    return points(corners, np.repeat(y[np.append(0, changed)], 2))


def power_axis(power: Numbers, title: str = "") -> Axis:
    """Return an axis for exponents of 2. Its limits are multiples of 4, so that they rarely change."""
    if not len(power):
        return Axis(0.0, 4.0, words=title, ticks="powers")
    low, high = float(power.min()), float(power.max())
    return Axis(math.floor((low - 2) / 4) * 4.0, math.floor((high + 1) / 4) * 4.0 + 4.0, words=title, ticks="powers")

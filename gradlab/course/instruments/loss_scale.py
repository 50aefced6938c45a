"""The loss scale: drag it, and see which gradients a 16-bit backward pass loses; watch GradScaler find one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ...drawing import (
    SUPERSCRIPTS,
    Axes,
    Axis,
    Band,
    Dots,
    Drag,
    Drawing,
    PanelBuilder,
    Path,
    Side,
    Spot,
    make_axes,
    make_box,
    text_width,
)
from ...widgets import Control, Instrument, Settings, View
from .loss_scale_numbers import (
    DTYPES,
    FIRST,
    LAST,
    NUMBER_KINDS,
    SCALER_UPDATES,
    SUBJECTS,
    NumberLine,
    Outcome,
    ScalerRun,
    Subject,
    gradients_of,
    make_subject,
    number_line,
    outcome_of,
    run_scaler,
)

_SCALES = [2**power for power in range(25)]
_INIT_SCALES = [1, 256, 65536, 2**24]
_GROWTH_INTERVALS = [2, 5, 10, 2000]
ZONES = {
    "zero": ("become 0", "0"),
    "subnormal": ("fewer digits", "fewer"),
    "normal": ("keep all digits", "all digits", "all"),
    "overflow": ("inf or NaN", "inf"),
}
"""Kind -> its words, from long to short."""
_Row = npt.NDArray[np.float64]

_LOOKS = {
    "zero": ("wrong/60", "wrong", "//"),
    "subnormal": ("gradients/35", "gradients", ".."),
    "normal": ("gradients", "ink", ""),
    "overflow": ("wrong/60", "wrong", "\\\\"),
}
"""Kind -> fill, edge and hatch."""
_ZONE_FILLS = {"zero": "grey/30", "subnormal": "grey/12", "overflow": "grey/30"}
_LEFT, _RIGHT, _BELOW = 58.0, 14.0, 38.0
_LINE_TOP, _LINE_GAP, _ZONE_WORDS = 28.0, 4.0, 34.0
_MOST_DIGITS = 11.0
_ROOM_FOR_UNSCALED = 10
"""From this power of two on, the histogram at a loss scale of 1 stands clear of the scaled one."""
_ROOM_FOR_INTERVAL = 380
"""From this width on, the title has room for growth_interval beside the scale in the corner."""


class LossScale(Instrument):
    """Real gradients over the number lines of fp16 and bf16 at a loss scale, beside a run of GradScaler."""

    title = "The loss scale"

    def controls(self) -> list[Control]:
        """Return the controls."""
        return [
            Control.choice("model", "model", "weighted", [(words, name) for name, words in SUBJECTS.items()]),
            Control.choice("dtype", "autocast", "fp16", list(DTYPES)),
            Control.slider("scale", "loss scale", 1, _SCALES, text=scale_text),
            Control.choice("init_scale", "init_scale", 65536, [(scale_text(scale), scale) for scale in _INIT_SCALES]),
            Control.choice("growth_interval", "growth_interval", 2, [(f"{n:,}", n) for n in _GROWTH_INTERVALS]),
            Control.slider("update", "update", SCALER_UPDATES, list(range(SCALER_UPDATES + 1)), plays=True),
        ]

    def render(self, at: Settings) -> View:
        """Return both panels for these settings."""
        model, dtype, scale, update = at["model"], at["dtype"], at["scale"], at["update"]
        init_scale, growth_interval = at["init_scale"], at["growth_interval"]
        outcome = _outcome(model, dtype, scale)
        converted = _conversion_words(outcome)
        run = _scaler_run(model, dtype, init_scale, growth_interval)
        return View(
            panels={
                "gradients": lambda width, height: draw_gradients(SUBJECTS[model], outcome, width, height),
                "scaler": lambda width, height: draw_scaler_run(run, update, width, height),
            },
            state=f"{_outcome_words(outcome)} {converted}{_scaler_words(run, update)}",
            note=_CONVERSION_NOTE if converted else "",
            code=_code_text(_subject(model), dtype, scale, init_scale, growth_interval),
        )

    def recorded(self) -> Iterable[Settings]:
        """Record every scale for each kind of gradients, every update, and every setting of the scaler."""
        for model in SUBJECTS:
            yield from ({"model": model, "scale": scale} for scale in _SCALES)
        yield from ({"dtype": "bf16", "scale": scale} for scale in _SCALES)
        yield from ({"update": update} for update in range(SCALER_UPDATES + 1))
        for init_scale in _INIT_SCALES:
            yield from ({"init_scale": init_scale, "growth_interval": n} for n in _GROWTH_INTERVALS)


def loss_scale(**start: Any) -> LossScale:
    """Return the loss scale instrument; start values by name: model, dtype, scale, init_scale, growth_interval."""
    return LossScale(**start)


# What was measured stays: the same settings give the same numbers, and a drag comes back to them.
_subject = cache(make_subject)


@cache
def _exact(model: str) -> Tensor:
    return gradients_of(_subject(model), None, 1.0)


@cache
def _outcome(model: str, dtype: str, scale: int) -> Outcome:
    return outcome_of(_exact(model), gradients_of(_subject(model), dtype, scale), dtype, scale)


@cache
def _scaler_run(model: str, dtype: str, init_scale: int, growth_interval: int) -> ScalerRun:
    return run_scaler(_subject(model), dtype, float(init_scale), growth_interval)


def _outcome_words(outcome: Outcome) -> str:
    """Say how many gradients are lost, and how far off the whole gradient is."""
    zero, fewer, overflow = (
        f"{count:,} ({part_text(count, outcome.total)})" if (count := outcome.count(kind)) else "none"
        for kind in ("zero", "subnormal", "overflow")
    )
    said = (
        f"{outcome.format}, loss scale {scale_text(outcome.scale)}: of {outcome.total:,} gradients, {zero} become 0, "
        f"{fewer} have fewer digits, and {overflow} become inf or NaN."
    )
    if math.isfinite(outcome.error):
        off = f"{outcome.error:.2%}" if outcome.error < 0.1 else f"{outcome.error:.0%}"
        said += f" Divided by the scale, they differ from the fp32 gradient by {off} of its length."
    return said


def _conversion_words(outcome: Outcome) -> str:
    """Say what converting the finished fp32 gradients would lose, where the backward pass loses another number."""
    zero, overflow = (outcome.by_conversion[kind] for kind in ("zero", "overflow"))
    if (zero, overflow) == (outcome.count("zero"), outcome.count("overflow")):
        return ""
    zeros, infinite = (f"{count:,}" if count else "none" for count in (zero, overflow))
    return f"Converting the finished fp32 gradients would make {zeros} of them 0 and {infinite} inf. "


_CONVERSION_NOTE = (
    "Converting the finished gradients gives other numbers than the backward pass: there the gradients between the "
    "layers are 16 bits wide, too."
)


def _scaler_words(run: ScalerRun, update: int) -> str:
    """Say where the scaler stands after an update, and which steps it has skipped."""
    skipped = [each for each in run.skipped if each <= update]
    which = f" ({', '.join(map(str, skipped))})" if skipped else ""
    return (
        f"GradScaler, after update {update}: loss scale {scale_text(run.scales[update])}; "
        f"{len(skipped)} of {update} steps skipped{which}."
    )


def _code_text(subject: Subject, format: str, scale: float, init_scale: float, growth_interval: int) -> str:
    """Return the plain PyTorch that was run for both panels; it uses model, loss_fn, batches and device."""
    dtype = DTYPES[format]
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


def draw_gradients(subject: str, outcome: Outcome, width: int, height: int) -> Drawing:
    """Draw the gradients of a subject by size, coloured by what became of them, under what each type can hold."""
    panel = PanelBuilder(subject, width, height)
    panel.corner(f"loss scale {scale_text(outcome.scale)}", scale_text(outcome.scale), role="scale-text")
    lines = [number_line(format) for format in DTYPES]
    right = width - _RIGHT
    tall = min(max(0.06 * height, 11.0), 20.0)
    top = _LINE_TOP + len(lines) * (tall + _LINE_GAP) + _ZONE_WORDS
    across = Side(FIRST, LAST, words="size of gradient \u00d7 loss scale (log2 axis)", ticks="powers")
    tallest = float(np.sum(list(outcome.counts.values()), axis=0).max()) / outcome.total * 100
    up = Side(0.0, math.ceil(tallest / 5 + 0.2) * 5.0, words="gradients (%)")
    axes = make_axes((width, height), _LEFT, top, right, height - _BELOW, across, up)
    chosen = next(line for line in lines if line.format == outcome.format)
    _add_zones(panel, axes, chosen, outcome)
    panel.axes(axes)
    for row, line in enumerate(lines):
        _add_number_line(panel, axes, line, _LINE_TOP + row * (tall + _LINE_GAP), tall, line is chosen)
    _add_unscaled(panel, axes, outcome)
    _add_histogram(panel, axes, outcome)
    _add_handle(panel, axes, outcome)
    counts = ", ".join(f"{ZONES[kind][0]}: {outcome.count(kind):,}" for kind in NUMBER_KINDS)
    what = f"{outcome.total:,} gradients of {subject}, times {scale_text(outcome.scale)}, in {outcome.format}"
    return panel.finish(f"{what}. {counts}.")


def _add_zones(panel: PanelBuilder, axes: Axes, line: NumberLine, outcome: Outcome) -> None:
    """Shade what the chosen type loses; write above each zone how many gradients of all it has."""
    edges = (FIRST, line.zero_below, line.normal_from, line.inf_from, LAST)
    for kind, low, high in zip(NUMBER_KINDS, edges, edges[1:], strict=False):
        start, end = (min(max(float(edge), FIRST), LAST) for edge in (low, high))
        x0, x1 = axes.x.at(start), axes.x.at(end)
        count = outcome.count(kind)
        if end <= start:  # the type reaches beyond the axis
            continue
        if kind != "normal":
            panel.add(make_box(f"zone {kind}", x0, axes.top, x1, axes.bottom, fill=_ZONE_FILLS[kind]))
        role = "wrong" if count and kind in ("zero", "overflow") else "ink"
        share = part_text(count, outcome.total)
        for id, y, texts in (
            (f"zone word {kind}", axes.top - 24, ZONES[kind]),
            (f"zone share {kind}", axes.top - 9, (f"{count:,} = {share}", share)),
        ):
            fitting = [text for text in texts if text_width(text, bold="share" in id) <= x1 - x0 - 10] or texts[-1:]
            panel.label(id, [Spot(text, (x0 + x1) / 2, y, "middle") for text in fitting], role=role, bold="share" in id)


def _add_number_line(panel: PanelBuilder, axes: Axes, line: NumberLine, top: float, tall: float, chosen: bool) -> None:
    """Draw a type as a band, as high as its numbers have binary digits at each power of two."""
    bottom = top + tall
    digits = np.array(line.digits, dtype=float)
    some = np.flatnonzero(digits)
    if not some.size:
        return
    first, last = int(some[0]), int(some[-1]) + 1
    upper = bottom - digits[first:last] / _MOST_DIGITS * tall
    points = _stairs(axes, first, np.full(last - first, bottom), upper)
    words = f"{line.format}: up to {int(digits.max())} binary digits; how high the band is shows how many"
    panel.add(Band(f"line {line.format}", points, fill="ink/35" if chosen else "grey/25", words=words))
    panel.label(f"name {line.format}", [Spot(line.format, axes.left - 6, bottom - tall / 2, "end")], bold=chosen)
    said = Spot(
        f"{int(digits.max())} binary digits", axes.x.at(1.0), bottom - tall * digits.max() / _MOST_DIGITS / 2, "middle"
    )
    panel.label(f"digits {line.format}", [said], size=11.0)


def _stairs(axes: Axes, first: int, low: _Row, high: _Row) -> _Row:
    """Return a band as triples: a step for each power of two from number ``first`` on, between two rows of places."""
    edges = axes.x.place(np.arange(first, first + len(low) + 1, dtype=float) + FIRST)
    out = np.empty((2 * len(low), 3))
    out[0::2, 0], out[1::2, 0] = edges[:-1], edges[1:]
    out[0::2, 1] = out[1::2, 1] = low
    out[0::2, 2] = out[1::2, 2] = high
    return out.ravel()


def _add_histogram(panel: PanelBuilder, axes: Axes, outcome: Outcome) -> None:
    below = np.zeros(LAST - FIRST)
    for kind in NUMBER_KINDS:
        share = outcome.counts[kind] / outcome.total * 100
        some = np.flatnonzero(share)
        if some.size:
            part = slice(int(some[0]), int(some[-1]) + 1)
            points = _stairs(axes, part.start, axes.y.place(below[part]), axes.y.place((below + share)[part]))
            words = f"{outcome.count(kind):,} gradients: {ZONES[kind][0]}"
            fill, edge, hatch = _LOOKS[kind]
            panel.add(Band(f"gradients {kind}", points, fill=fill, stroke=edge, hatch=hatch, words=words))
        below = below + share


def _add_unscaled(panel: PanelBuilder, axes: Axes, outcome: Outcome) -> None:
    """Draw the outline that the histogram has at a loss scale of 1: a scale only moves it to the right."""
    moved = round(math.log2(outcome.scale))
    if moved < _ROOM_FOR_UNSCALED:
        return
    share = np.sum(list(outcome.counts.values()), axis=0)[moved:] / outcome.total * 100
    some = np.flatnonzero(share)
    part = slice(int(some[0]), int(some[-1]) + 1)
    rows = _stairs(axes, part.start, np.full(part.stop - part.start, axes.bottom), axes.y.place(share[part]))
    edges = rows.reshape(-1, 3)
    ends = [[edges[0, 0], axes.bottom], *edges[:, [0, 2]].tolist(), [edges[-1, 0], axes.bottom]]
    panel.add(
        Path(
            "unscaled",
            np.ravel(ends),
            stroke="ink",
            width=1.2,
            dash="dashed",
            words="the same gradients at loss scale 1",
        )
    )
    peak = int(np.argmax(share))
    left = int(np.flatnonzero(share > share[peak] / 2)[0])
    above = Spot("loss scale 1", axes.x.at(float(FIRST + peak)), axes.y.at(float(share[peak])) - 7, "middle")
    beside = Spot("loss scale 1", axes.x.at(float(FIRST + left)) - 6, axes.y.at(float(share[peak]) / 2), "end")
    panel.label("unscaled words", [above, beside], size=11.0)


def _add_handle(panel: PanelBuilder, axes: Axes, outcome: Outcome) -> None:
    """Draw the mark that is dragged: the median gradient times the scale."""
    x = axes.x.at(math.log2(outcome.median * outcome.scale))
    per_pixel = (LAST - FIRST) / (axes.right - axes.left) * math.log10(2)
    scale_axis = Axis(math.log10(outcome.scale) - per_pixel * x, per_pixel, log=True)
    drag = Drag("scale", scale_axis, axes.y.axis)
    said = f"drag: loss scale {scale_text(outcome.scale)}; the line is the median gradient"
    panel.add(Path("median", (x, axes.bottom, x, axes.top), stroke="scale", width=3.0, words=said, drag=drag))
    y = axes.top + 10
    panel.add(Dots("handle", (x, y), shape="diamond", size=18.0, fill="scale", stroke="ink", words=said, drag=drag))


def draw_scaler_run(run: ScalerRun, update: int, width: int, height: int) -> Drawing:
    """Draw the scale up to an update as steps, and a cross at each step that was skipped."""
    interval = f"growth_interval {run.growth_interval:,}"
    panel = PanelBuilder("GradScaler" if width < _ROOM_FOR_INTERVAL else f"GradScaler, {interval}", width, height)
    powers = np.log2(np.array(run.scales))
    low, high = math.floor((powers.min() - 1) / 4) * 4.0, math.floor((powers.max() + 1) / 4) * 4.0 + 4.0
    across = Side(0.0, float(len(run.scales) - 1), words="updates", ticks="updates")
    up = Side(low, high, words="loss scale (log2 axis)", ticks="powers")
    axes = make_axes((width, height), _LEFT, 34.0, width - _RIGHT, height - _BELOW, across, up)
    panel.axes(axes)
    skipped = [each for each in run.skipped if each <= update]
    now = run.scales[update]
    skips = f"{len(skipped)} step{'' if len(skipped) == 1 else 's'} skipped"
    panel.corner(f"scale {scale_text(now)}, {skips}", f"{scale_text(now)}, {len(skipped)} skipped")
    # Update n works with scales[n - 1]; it is drawn from n - 1 to n.
    at = np.repeat(np.arange(update + 1), 2)[1:-1] if update else np.array([0.0])
    values = np.repeat(powers[:update], 2) if update else powers[:1]
    points = np.append(
        axes.places(at.astype(float), values), axes.places(np.array([float(update)]), powers[update : update + 1])
    )
    panel.add(Path("scale", points, stroke="scale", width=3.0, words=f"the loss scale, {scale_text(now)} now"))
    if skipped:
        places = axes.places(np.array(skipped, dtype=float), powers[np.array(skipped) - 1])
        words = "skipped: a gradient was inf or NaN, so the weights stay and the scale is halved"
        panel.add(Dots("skipped", places, shape="cross", size=10.0, stroke="wrong", width=2.4, words=words))
    x, y = axes.x.at(update), axes.y.at(float(powers[update]))
    panel.add(Dots("now", (x, y), size=8.0, fill="scale", stroke="ink", words=f"now {scale_text(now)}"))
    end = f"{len(skipped)} of {update} steps were skipped"
    return panel.finish(f"After update {update}, with {interval}, the loss scale is {scale_text(now)}; {end}.")

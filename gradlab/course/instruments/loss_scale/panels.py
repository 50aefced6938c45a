"""The two panels of the loss scale: the gradients over the number lines, and a GradScaler's walk."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ....drawing import (
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
from .gradients import FATES, FIRST, LAST, NumberLine, Outcome
from .walk import Walk
from .words import ZONES, part_text, scale_text

_Row = npt.NDArray[np.float64]

_LOOKS = {
    "zero": ("wrong/60", "wrong", "//"),
    "subnormal": ("gradients/35", "gradients", ".."),
    "normal": ("gradients", "ink", ""),
    "overflow": ("wrong/60", "wrong", "\\\\"),
}
"""Fate -> fill, edge and hatch."""
_ZONE_FILLS = {"zero": "grey/30", "subnormal": "grey/12", "overflow": "grey/30"}
_LEFT, _RIGHT, _BELOW = 58.0, 14.0, 38.0
_LINE_TOP, _LINE_GAP, _ZONE_WORDS = 28.0, 4.0, 34.0
_MOST_DIGITS = 11.0
_ROOM_FOR_UNSCALED = 10
"""From this power of two on, the histogram at a loss scale of 1 stands clear of the scaled one."""
_ROOM_FOR_INTERVAL = 380
"""From this width on, the title has room for growth_interval beside the scale in the corner."""


def draw_gradients(subject: str, outcome: Outcome, lines: list[NumberLine], width: int, height: int) -> Drawing:
    """Draw the gradients of a subject by size, coloured by what became of them, under what each type can hold."""
    panel = PanelBuilder(subject, width, height)
    panel.corner(f"loss scale {scale_text(outcome.scale)}", scale_text(outcome.scale), role="scale-text")
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
    counts = ", ".join(f"{ZONES[fate][0]}: {outcome.count(fate):,}" for fate in FATES)
    what = f"{outcome.total:,} gradients of {subject}, times {scale_text(outcome.scale)}, in {outcome.format}"
    return panel.finish(f"{what}. {counts}.")


def _add_zones(panel: PanelBuilder, axes: Axes, line: NumberLine, outcome: Outcome) -> None:
    """Shade what the chosen type loses; write above each zone how many gradients of all met that fate."""
    edges = (FIRST, line.zero_below, line.normal_from, line.inf_from, LAST)
    for fate, low, high in zip(FATES, edges, edges[1:], strict=False):
        start, end = (min(max(float(edge), FIRST), LAST) for edge in (low, high))
        x0, x1 = axes.x.at(start), axes.x.at(end)
        count = outcome.count(fate)
        if end <= start:  # the type reaches beyond the axis
            continue
        if fate != "normal":
            panel.add(make_box(f"zone {fate}", x0, axes.top, x1, axes.bottom, fill=_ZONE_FILLS[fate]))
        role = "wrong" if count and fate in ("zero", "overflow") else "ink"
        share = part_text(count, outcome.total)
        for id, y, texts in (
            (f"zone word {fate}", axes.top - 24, ZONES[fate]),
            (f"zone share {fate}", axes.top - 9, (f"{count:,} = {share}", share)),
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
    for fate in FATES:
        share = outcome.counts[fate] / outcome.total * 100
        some = np.flatnonzero(share)
        if some.size:
            part = slice(int(some[0]), int(some[-1]) + 1)
            points = _stairs(axes, part.start, axes.y.place(below[part]), axes.y.place((below + share)[part]))
            words = f"{outcome.count(fate):,} gradients: {ZONES[fate][0]}"
            fill, edge, hatch = _LOOKS[fate]
            panel.add(Band(f"gradients {fate}", points, fill=fill, stroke=edge, hatch=hatch, words=words))
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


def draw_walk(walk: Walk, update: int, width: int, height: int) -> Drawing:
    """Draw the scale up to an update as steps, and a cross at each step that was skipped."""
    interval = f"growth_interval {walk.growth_interval:,}"
    panel = PanelBuilder("GradScaler" if width < _ROOM_FOR_INTERVAL else f"GradScaler, {interval}", width, height)
    powers = np.log2(np.array(walk.scales))
    low, high = math.floor((powers.min() - 1) / 4) * 4.0, math.floor((powers.max() + 1) / 4) * 4.0 + 4.0
    across = Side(0.0, float(len(walk.scales) - 1), words="updates", ticks="updates")
    up = Side(low, high, words="loss scale (log2 axis)", ticks="powers")
    axes = make_axes((width, height), _LEFT, 34.0, width - _RIGHT, height - _BELOW, across, up)
    panel.axes(axes)
    skipped = [each for each in walk.skipped if each <= update]
    now = walk.scales[update]
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

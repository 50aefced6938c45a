"""The panels of the peak: bytes by category over one update with its peak, and which switch moved the peak."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...drawing import (
    Axes,
    Band,
    Dots,
    Drawing,
    PanelBuilder,
    Path,
    Side,
    Spot,
    area_look,
    from_zero,
    make_axes,
    make_box,
    shorten,
    spread_labels,
    stacked,
    text_role,
    text_width,
)
from ...formatting import bytes_text
from ...memory import CATEGORIES
from .peak_numbers import Effect, Phase, UpdateMemory, signed

_SHARES = {"zero_grad": 3.0, "forward": 7.0, "backward": 8.0, "step": 4.0}
"""How wide a phase is beside the others; the several passes of a window share the place of one."""
_LEFT, _TOP, _BOTTOM = 62.0, 46.0, 40.0  # CSS pixels
_BAR, _GAP = 12.0, 8.0  # the bar at the right, and what lies between it and the bytes over the update
_SPACE = 5.0  # and between the bar and its labels
_HEAD = 12.0  # above the peak, for its mark
_SMALL = 0.004  # of the peak: what is less has no label


@dataclass(frozen=True)
class Places:
    """Where each phase of an update lies on the x axis, and where each of its moments begins and ends."""

    phases: tuple[tuple[str, float, float], ...]
    moments: tuple[tuple[float, float], ...]


def place_phases(phases: Sequence[Phase], left: float, right: float) -> Places:
    """Share the axis among the phases, and each phase equally among its moments."""
    count = {name: sum(phase.name == name for phase in phases) for name in _SHARES}
    shares = np.array([_SHARES[phase.name] / count[phase.name] for phase in phases])
    ends = left + np.concatenate([[0.0], np.cumsum(shares) / shares.sum()]) * (right - left)
    named, moments = [], []
    for phase, a, b in zip(phases, ends[:-1], ends[1:], strict=True):
        named.append((phase.name, float(a), float(b)))
        cuts = np.linspace(a, b, len(phase.moments) + 1).tolist()
        moments += list(pairwise(cuts))
    return Places(tuple(named), tuple(moments))


def draw_update_memory(now: UpdateMemory, start: UpdateMemory, width: int, height: int) -> Drawing:
    """Stack the categories over the update, mark the peak, and draw the top of the start's update as an outline."""
    panel = PanelBuilder("memory of one update", width, height)
    other = start.settings != now.settings
    highest = max(now.peak, start.peak)
    tall = height - _TOP - _BOTTOM
    top = from_zero(highest * tall / (tall - _HEAD))
    right = width - _beside(now, width)
    size = (width, height)
    axes = make_axes(
        size, _LEFT, _TOP, right, height - _BOTTOM, Side(0, 1, ticks="none"), Side(0.0, top, ticks="bytes")
    )
    where = place_phases(now.phases, axes.left, axes.right)
    _add_areas(panel, axes, now, where)
    if other:
        _add_outline(panel, axes, start, where)
        said = f"at the start {bytes_text(start.peak)}"
        panel.corner(f"\u2504 {said}", said)
    panel.axes(axes)
    where_text = f"\u25bc peak {bytes_text(now.peak)} in {now.where}"
    panel.label(
        "peak", [Spot(text, 8.0, 33.0) for text in (where_text, f"\u25bc peak {bytes_text(now.peak)} in {now.call}")]
    )
    _add_names(panel, axes, where)
    _add_peak(panel, axes, now, where)
    _add_bar(panel, axes, now)
    return panel.finish(_words(now, start if other else None))


def _beside(now: UpdateMemory, width: int) -> float:
    """Return the room for the bar and its labels, which leave the larger part to the update."""
    widest = max(text_width(_label(now, name), 11.0) for name in now.at_peak)
    return min(_GAP + _BAR + _SPACE + widest + 4, 0.4 * width)


def _label(now: UpdateMemory, name: str) -> str:
    return f"{name} {bytes_text(now.at_peak[name])}"


def _add_areas(panel: PanelBuilder, axes: Axes, now: UpdateMemory, where: Places) -> None:
    moments = [moment for phase in now.phases for moment in phase.moments]
    edges = stacked({name: [moment[name] for moment in moments] for name in CATEGORIES}, len(moments))
    x = np.array(where.moments).ravel()
    for name, (low, high) in edges.items():
        shown = np.where(high > low, 1.0, np.nan)
        points = np.column_stack(
            [np.repeat(shown, 2) * x, np.repeat(axes.y.place(low), 2), np.repeat(axes.y.place(high), 2)]
        )
        if np.isfinite(points).all(axis=1).any():
            panel.add(Band(name, np.rint(points * 4) / 4, width=1.2, **area_look(name)))
    for at, ((name, a, b), phase) in enumerate(zip(where.phases, now.phases, strict=True)):
        held = max(phase.moments, key=lambda moment: sum(moment.values()))
        parts = [f"{kind} {bytes_text(size)}" for kind, size in held.items() if size]
        words = f"{name}, at its highest {bytes_text(phase.top)}: {', '.join(parts)}"
        panel.marks.insert(1, make_box(f"phase {at}", a, axes.top, b, axes.bottom, fill="paper", words=words))


def _add_outline(panel: PanelBuilder, axes: Axes, start: UpdateMemory, now: Places) -> None:
    """Draw the top of the start's update: over the same width, and a single pass at the last pass of a window."""
    where = place_phases(start.phases, axes.left, axes.right)
    spots = where.moments
    gaps: list[int] = []
    if len(where.phases) < len(now.phases):
        spots, gaps = _at_last(start.phases, now)
    totals = np.array([sum(moment.values()) for phase in start.phases for moment in phase.moments], dtype=float)
    points = axes.places(np.zeros(2 * len(totals)), np.repeat(totals, 2)).reshape(-1, 2)
    points[:, 0] = np.array(spots).ravel()
    points = np.insert(points, [2 * gap for gap in gaps], np.nan, axis=0)
    words = f"The update at the start: peak {bytes_text(start.peak)} in {start.where}"
    panel.add(Path("start", np.rint(points.ravel() * 4) / 4, stroke="grey", width=1.4, dash="dashed", words=words))


def _at_last(phases: Sequence[Phase], now: Places) -> tuple[tuple[tuple[float, float], ...], list[int]]:
    """Place each phase where the last one of its name is now; return its moments' places, and before which is a gap."""
    last = {name: (a, b) for name, a, b in now.phases}
    moments: list[tuple[float, float]] = []
    gaps: list[int] = []
    for phase in phases:
        a, b = last[phase.name]
        if moments and abs(moments[-1][1] - a) > 0.5:
            gaps.append(len(moments))
        moments += pairwise(np.linspace(a, b, len(phase.moments) + 1).tolist())
    return tuple(moments), gaps


def _add_names(panel: PanelBuilder, axes: Axes, where: Places) -> None:
    """Write the calls under the axis, those of a window once, and a thin line where a phase begins."""
    lines: list[float] = []
    for _, a, _ in where.phases[1:]:
        lines += [a, axes.bottom, a, axes.bottom + 5, np.nan, np.nan]
    panel.add(Path("divisions", np.array(lines[:-2]), stroke="grey", width=1.0))
    several = sum(name == "forward" for name, _, _ in where.phases)
    names = where.phases
    if several > 1:
        inside = [phase for phase in where.phases if phase[0] in ("forward", "backward")]
        a, b = inside[0][1], inside[-1][2]
        said = (f"{several} \u00d7 forward, backward", f"{several} \u00d7")
        panel.label("window", [Spot(text, (a + b) / 2, axes.bottom + 13, "middle") for text in said], size=11.0)
        names = tuple(phase for phase in where.phases if phase not in inside)
    for at, (name, a, b) in sorted(enumerate(names), key=lambda each: each[1][1] - each[1][2]):  # the widest first
        x, half = (a + b) / 2, text_width(name, 11.0) / 2
        x = min(max(x, axes.left + half - 20), axes.right - half + 20)
        spots = [Spot(name, x, axes.bottom + down, "middle") for down in (13.0, 28.0)]
        panel.label(f"call {at}", spots, size=11.0)


def _add_peak(panel: PanelBuilder, axes: Axes, now: UpdateMemory, where: Places) -> None:
    a, b = where.moments[_at_peak(now)]
    y = axes.y.at(now.peak)
    panel.add(
        Path("peak line", (axes.left, y, axes.right + _GAP, y), stroke="ink", width=1.0, dash="dotted"),
        Dots("peak mark", ((a + b) / 2, y - 6), shape="down", size=9.0, fill="ink"),
    )


def _at_peak(now: UpdateMemory) -> int:
    """Return which moment of the update is its peak."""
    moments = [moment for phase in now.phases for moment in phase.moments]
    return next(at for at, moment in enumerate(moments) if sum(moment.values()) == now.peak)


def _add_bar(panel: PanelBuilder, axes: Axes, now: UpdateMemory) -> None:
    """Stand what made the peak beside the update as a bar, with the bytes of each category."""
    left = axes.right + _GAP
    low = 0.0
    middles: dict[str, float] = {}
    for name, size in now.at_peak.items():
        if size:
            words = f"at the peak: {name} {bytes_text(size)}"
            box = left, axes.y.at(low + size), left + _BAR, axes.y.at(low)
            panel.add(make_box(f"peak {name}", *box, width=1.2, words=words, **area_look(name)))
            if size > _SMALL * now.peak:
                middles[name] = axes.bottom - axes.y.at(low + size / 2)
        low += size
    start = left + _BAR + _SPACE
    room = panel.width - start - 2
    for name, up in spread_labels(middles, 14, axes.bottom - axes.top).items():
        spots = [Spot(text, start, axes.bottom - up) for text in _fitting((_label(now, name), name), room)]
        panel.label(f"name {name}", spots, size=11.0, role=text_role(name))


def _fitting(texts: Iterable[str], room: float) -> list[str]:
    fit = [text for text in texts if text_width(text, 11.0) <= room]
    return fit or [shorten(list(texts)[-1], room, 11.0)]


def _words(now: UpdateMemory, start: UpdateMemory | None) -> str:
    said = f"Peak {bytes_text(now.peak)} in {now.where}: {parts_text(now)}."
    return said if start is None else f"{said} At the start it was {bytes_text(start.peak)}, in {start.where}."


def parts_text(now: UpdateMemory) -> str:
    """Write what made the peak, the largest first: ``optimizer 200 KiB, activations 192 KiB``."""
    largest = sorted(now.at_peak.items(), key=lambda part: -part[1])
    return ", ".join(f"{name} {bytes_text(size)}" for name, size in largest if size)


_ROW, _FIRST = 22.0, 52.0  # CSS pixels
_SIZE = 12.0


def draw_effects(found: Sequence[Effect], total: int, width: int, height: int) -> Drawing:
    """Draw a bar for each changed switch, to the left where it lowers the peak; ``total`` is all of them together."""
    panel = PanelBuilder("which switch moved the peak", width, height)
    if not found:
        panel.label("nothing", [Spot("nothing is changed yet: turn a switch", 8.0, 36.0)])
        return panel.finish("Nothing is changed yet.")
    panel.label("how", [Spot(text, 8.0, 33.0) for text in _how(len(found))], role="grey-text")
    rows = [(effect.words, effect.moved, effect.name) for effect in found]
    rows += [("all together", total, "all")] * (len(found) > 1)
    names = min(max(text_width(words, _SIZE) for words, _, _ in rows) + 16, 0.5 * width)
    values = max(text_width(signed(moved), _SIZE) for _, moved, _ in rows) + 14
    left, right = names, width - values
    largest = max(*(abs(moved) for _, moved, _ in rows), 1)
    middle = (left + right) / 2
    row = min(_ROW, (height - _FIRST - 8) / len(rows))
    bottom = _FIRST + row * len(rows)
    for at, (words, moved, name) in enumerate(rows):
        y = _FIRST + row * (at + 0.5)
        end = middle + (right - left - 12) / 2 * moved / largest
        side = f"{words}: the peak is {bytes_text(abs(moved))} {'higher' if moved > 0 else 'lower'}"
        if moved:
            box = min(middle, end), y - 0.32 * row, max(middle, end), y + 0.32 * row
            look = {"fill": "grey/70" if name == "all" else "grey/40", "hatch": "//" if moved > 0 else ""}
            panel.add(make_box(f"effect {name}", *box, stroke="ink", width=1.0, words=side, **look))
        said = shorten(words, names - 12, _SIZE)
        panel.label(f"switch {name}", [Spot(said, 8.0, y)], size=_SIZE, bold=name == "all")
        panel.label(f"moved {name}", [Spot(signed(moved), width - 6.0, y, "end")], size=_SIZE, bold=name == "all")
    panel.add(Path("as it was", (middle, _FIRST - 4, middle, bottom), stroke="ink", width=1.2))
    spots = [Spot(text, middle, bottom + 10, "middle") for text in ("\u2190 lower \u00b7 higher \u2192",)]
    panel.label("sides", spots, size=11.0)
    return panel.finish(effects_text(found, total))


def effects_height(count: int) -> int:
    """Return the height, in CSS pixels, that the bars of ``count`` changed switches need."""
    return round(_FIRST + _ROW * (count + (count > 1)) + 22)


def effects_text(found: Sequence[Effect], total: int, most: int | None = None) -> str:
    """Say what all switches did together, and each by itself: the ``most`` largest, the others are counted."""
    if not found:
        return "Nothing is changed yet."
    if len(found) == 1:
        return f"Against the start: {found[0].text}."
    each = "; ".join(effect.text for effect in found[:most])
    more = len(found) - len(found[:most])
    each += f"; {more} more in the bars" * bool(more)
    return f"Against the start {signed(total)}. Each switch by itself, the others as they are: {each}."


def _how(count: int) -> tuple[str, ...]:
    if count == 1:
        return ("against the same update with it put back",)
    return ("each against the same update with only it put back", "each with only that one put back")

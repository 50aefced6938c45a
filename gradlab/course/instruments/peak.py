"""The peak: one update's memory over time, what made its peak, and how far the switches moved it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

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
from ...widgets import Control, Instrument, View
from .peak_numbers import (
    AFTER_STEP,
    BEFORE_BACKWARD,
    BEFORE_FORWARD,
    PeakSettings,
    Phase,
    UpdateMemory,
    changes_text,
    measure_peak,
    peak_source,
    signed,
)

_START = PeakSettings()
_PLACES = (BEFORE_FORWARD, BEFORE_BACKWARD, AFTER_STEP)
_OUTLINE = "The dashed outline is the update with the settings at the start."
_HINT = "How far set_to_none moves the peak depends on where zero_grad stands: try it in all three places (minGPT#106)."


class Peak(Instrument):
    """One update of a stack of layers, measured as its loop runs.

    ``width``, ``depth`` and ``batch`` are the model's and the rows of one micro-batch; ``accumulate``, ``optimizer``,
    ``place`` (of ``zero_grad``) and ``set_to_none`` are how it is trained. Keyword arguments set the start, with which
    later settings are compared.
    """

    title = "The peak"

    def controls(self) -> list[Control]:
        """Return the model's size, then the switches of the loop."""
        return [
            Control.slider("width", "width", _START.width, [16, 32, 64, 128]),
            Control.slider("depth", "depth", _START.depth, [1, 2, 4, 6, 8]),
            Control.slider("batch", "batch", _START.batch, [2**power for power in range(10)]),
            Control.slider("accumulate", "accumulate", _START.accumulate, [1, 2, 4]),
            Control.choice("optimizer", "optimizer", _START.optimizer, ["sgd", "adam"]),
            Control.choice("place", "zero_grad", _START.place, _PLACES),
            Control.tick("set_to_none", "set_to_none", _START.set_to_none),
        ]

    def render(self, at: Mapping[str, Any]) -> View:
        """Measure these settings, and those at the start for the comparison."""
        settings, first = PeakSettings(**at), self._first
        now, start = measure_peak(settings), measure_peak(first)
        state, note = f"Peak {bytes_text(now.peak)} in {now.where}: {parts_text(now)}.", ""
        if settings != first:
            state += f" Against the start: {changes_text(settings, first)}: {signed(now.peak - start.peak)}."
            cleared_alike = (settings.set_to_none, settings.place) == (first.set_to_none, first.place)
            note = _OUTLINE if cleared_alike else f"{_OUTLINE} {_HINT}"
        return View(
            panels={"memory": lambda width, height: draw_update_memory(now, start, width, height)},
            state=state,
            note=note,
            code=peak_source(settings),
            lit=now.lines,
        )

    def _still(self, view: View) -> tuple[list[Drawing], int, Drawing | None]:
        """Return the memory beside the loop and its words."""
        if not view.code:  # nothing could be measured
            return super()._still(view)
        before = set(peak_source(self._first).splitlines())
        changed = [number for number, line in enumerate(view.code.splitlines(), 1) if line not in before]
        loop = self._code_drawing(view, changed)
        wide, tall = self.size
        return [view.panels["memory"](wide, max(tall, loop.height))], 1, loop

    @property
    def _first(self) -> PeakSettings:
        return PeakSettings(**{name: control.start for name, control in self._controls.items()})

    @property
    def at_peak(self) -> Mapping[str, int]:
        """Bytes by category at the peak of the settings chosen now."""
        return measure_peak(PeakSettings(**self.values)).at_peak

    def recorded(self) -> Iterable[Mapping[str, Any]]:
        """Return each switch by itself, and the switches of ``zero_grad`` with a large and a small batch."""
        yield from super().recorded()
        for optimizer, place, clear, batch in product(("sgd", "adam"), _PLACES, (True, False), (4, 128)):
            yield {"optimizer": optimizer, "place": place, "set_to_none": clear, "batch": batch}


def peak(**start: Any) -> Peak:
    """Return the peak; keyword arguments set its start: ``peak(optimizer="sgd", batch=8)``."""
    return Peak(**start)


_SHARES = {"zero_grad": 3.0, "forward": 7.0, "backward": 8.0, "step": 4.0}
"""Width of each phase beside the others; the several passes of a window share the place of one."""
_LEFT, _TOP, _BOTTOM = 62.0, 46.0, 40.0  # CSS pixels
_BAR, _GAP, _SPACE = 12.0, 8.0, 5.0  # the bar at the right, and what lies before and behind it
_HEAD = 12.0  # above the peak, for its mark
_SMALL = 0.004  # of the peak: what is less has no label
_SIZE = 11.0  # of words at the axes


def draw_update_memory(now: UpdateMemory, start: UpdateMemory, width: int, height: int) -> Drawing:
    """Stack the categories over the update, mark the peak, and draw the top of the start's update as an outline."""
    panel = PanelBuilder("memory of one update", width, height)
    tall = height - _TOP - _BOTTOM
    top = from_zero(max(now.peak, start.peak) * tall / (tall - _HEAD))
    widest = max(text_width(_label(now, name), _SIZE) for name in now.at_peak)
    right = width - min(_GAP + _BAR + _SPACE + widest + 4, 0.4 * width)  # the larger part is the update's
    sides = Side(0, 1, ticks="none"), Side(0.0, top, ticks="bytes")
    axes = make_axes((width, height), _LEFT, _TOP, right, height - _BOTTOM, *sides)
    phases = _place_phases(now.phases, axes)
    _add_areas(panel, axes, now, phases)
    words = f"Peak {bytes_text(now.peak)} in {now.where}: {parts_text(now)}."
    if start.settings != now.settings:
        before = f"peak {bytes_text(start.peak)} in {start.where}"
        outline = _steps(axes, start)[:, [0, 2]].ravel()
        look: dict[str, Any] = {"stroke": "grey", "width": 1.4, "dash": "dashed"}
        panel.add(Path("start", outline, words=f"The update at the start: {before}", **look))
        panel.corner(f"\u2504 at the start {bytes_text(start.peak)}", f"at the start {bytes_text(start.peak)}")
        words += f" At the start it was {before.removeprefix('peak ').replace(' in ', ', in ', 1)}."
    panel.axes(axes)
    peak = f"\u25bc peak {bytes_text(now.peak)} in "
    panel.label("peak", [Spot(peak + now.where, 8.0, 33.0), Spot(peak + now.call, 8.0, 33.0)])
    _add_names(panel, axes, phases)
    _add_bar(panel, axes, now)
    return panel.finish(words)


def _place_phases(phases: Sequence[Phase], axes: Axes) -> list[tuple[str, float, float]]:
    """Return each phase with the places where it begins and ends."""
    names = [phase.name for phase in phases]
    shares = np.array([_SHARES[name] / names.count(name) for name in names])
    ends = axes.left + np.concatenate([[0.0], np.cumsum(shares) / shares.sum()]) * (axes.right - axes.left)
    return [(name, float(a), float(b)) for name, (a, b) in zip(names, pairwise(ends), strict=True)]


def _steps(axes: Axes, update: UpdateMemory, category: str = "") -> np.ndarray:
    """Return rows of x, lower and upper edge: those of one category, or from 0 to the top of all."""
    moments = [moment for phase in update.phases for moment in phase.moments]
    edges = stacked({name: [moment[name] for moment in moments] for name in CATEGORIES}, len(moments))
    low, high = edges[category] if category else (np.zeros(len(moments)), edges[list(edges)[-1]][1])
    places = _place_phases(update.phases, axes)
    cuts = [np.linspace(a, b, len(phase.moments) + 1) for phase, (_, a, b) in zip(update.phases, places, strict=True)]
    x = np.concatenate([np.column_stack([each[:-1], each[1:]]).ravel() for each in cuts])
    x = np.where(np.repeat(high > low, 2), x, np.nan)
    points = np.column_stack([x, np.repeat(axes.y.place(low), 2), np.repeat(axes.y.place(high), 2)])
    return np.rint(points * 4) / 4


def _add_areas(panel: PanelBuilder, axes: Axes, now: UpdateMemory, phases: list[tuple[str, float, float]]) -> None:
    for at, (phase, (name, a, b)) in enumerate(zip(now.phases, phases, strict=True)):
        parts = ", ".join(f"{kind} {bytes_text(size)}" for kind, size in phase.highest.items() if size)
        words = f"{name}, at its highest {bytes_text(sum(phase.highest.values()))}: {parts}"
        panel.add(make_box(f"phase {at}", a, axes.top, b, axes.bottom, fill="paper", words=words))
    for name in CATEGORIES:
        points = _steps(axes, now, name)
        if np.isfinite(points).all(axis=1).any():
            panel.add(Band(name, points, width=1.2, **area_look(name)))
    tops = _steps(axes, now)
    x = float(tops[tops[:, 2] == tops[:, 2].min(), 0][:2].mean())
    y = axes.y.at(now.peak)
    panel.add(Path("peak line", (axes.left, y, axes.right + _GAP, y), stroke="ink", width=1.0, dash="dotted"))
    panel.add(Dots("peak mark", (x, y - 6), shape="down", size=9.0, fill="ink"))


def _add_names(panel: PanelBuilder, axes: Axes, phases: list[tuple[str, float, float]]) -> None:
    """Write the calls under the axis, those of a window once, and a thin line where a phase begins."""
    lines = [number for _, a, _ in phases[1:] for number in (a, axes.bottom, a, axes.bottom + 5, np.nan, np.nan)]
    panel.add(Path("divisions", np.array(lines[:-2]), stroke="grey", width=1.0))
    window = [phase for phase in phases if phase[0] in ("forward", "backward")]
    if len(window) > 2:
        passes, middle = f"{len(window) // 2} \u00d7", (window[0][1] + window[-1][2]) / 2
        texts = (f"{passes} forward, backward", passes)
        panel.label("window", [Spot(text, middle, axes.bottom + 13, "middle") for text in texts], size=_SIZE)
        phases = [phase for phase in phases if phase not in window]
    for name, a, b in sorted(phases, key=lambda phase: phase[1] - phase[2]):  # the widest first
        half = text_width(name, _SIZE) / 2
        x = min(max((a + b) / 2, axes.left + half - 20), axes.right - half + 20)
        panel.label(f"call {name}", [Spot(name, x, axes.bottom + down, "middle") for down in (13.0, 28.0)], size=_SIZE)


def _label(now: UpdateMemory, name: str) -> str:
    return f"{name} {bytes_text(now.at_peak[name])}"


def _add_bar(panel: PanelBuilder, axes: Axes, now: UpdateMemory) -> None:
    """Stand what made the peak beside the update as a bar, with the bytes of each category."""
    left, low, middles = axes.right + _GAP, 0.0, {}
    for name, size in now.at_peak.items():
        if size:
            box = left, axes.y.at(low + size), left + _BAR, axes.y.at(low)
            words = f"at the peak: {_label(now, name)}"
            panel.add(make_box(f"peak {name}", *box, width=1.2, words=words, **area_look(name)))
        if size > _SMALL * now.peak:
            middles[name] = axes.bottom - axes.y.at(low + size / 2)
        low += size
    start = left + _BAR + _SPACE
    for name, up in spread_labels(middles, 14, axes.bottom - axes.top).items():
        texts = (_label(now, name), name, shorten(name, panel.width - start - 2, _SIZE))
        spots = [Spot(text, start, axes.bottom - up) for text in texts]
        panel.label(f"name {name}", spots, size=_SIZE, role=text_role(name))


def parts_text(now: UpdateMemory) -> str:
    """Write what made the peak, the largest first: ``optimizer 200 KiB, activations 192 KiB``."""
    largest = sorted(now.at_peak, key=lambda name: -now.at_peak[name])
    return ", ".join(_label(now, name) for name in largest if now.at_peak[name])

"""Floating-point formats as pictures: how far they reach, how finely, and which gradients fp16 loses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ...drawing import FAINT, GRADIENTS, GREY, INK, SCALE, SUPERSCRIPTS, WRONG, own_look, tint

FORMATS = {"fp32": "#332288", "bf16": "#117733", "fp16": "#C0405F"}
"""A colour for each format (after Paul Tol's muted); other names are drawn in grey."""
MOST_TICKS = 400
"""More numbers than this in a window cannot be told apart and are drawn as a band."""

_WORDS = 15.0
_DARK_SCALE = "#8A3F70"  # SCALE as a colour of words: dark enough to be read on white
_BIT_KINDS = (("sign", INK), ("exponent", GREY), ("fraction", FAINT))


def range_figure(
    ranges: Mapping[str, tuple[float, float, float]], bits: Mapping[str, tuple[int, int]], marks: Mapping[str, float]
) -> Figure:
    """Draw each format's bits and, on a logarithmic axis, from its smallest number to its largest.

    ranges: name -> (smallest number, smallest with full precision, largest); between the first two lie the subnormal
    numbers, drawn pale and hatched. bits: name -> (exponent bits, fraction bits). marks: word -> a value to point at.
    """
    with own_look():
        figure = Figure(figsize=(13.5, 5.0), layout="constrained")
        left, axes = figure.subplots(1, 2, width_ratios=(4, 9))
        for row, (name, (smallest, normal, largest)) in enumerate(ranges.items()):
            _bits(left, row, name, *bits[name])
            colour = FORMATS.get(name, GREY)
            low, full, high = (math.log10(value) for value in (smallest, normal, largest))
            axes.barh(row, full - low, 0.42, low, color=tint(colour, 0.25), edgecolor=colour, hatch="///")
            axes.barh(row, high - full, 0.42, full, color=colour, edgecolor=colour)
            for at, value, side in ((low, smallest, "right"), (high, largest, "left")):
                gap = -0.7 if side == "right" else 0.7
                axes.text(at + gap, row, _power(value), ha=side, va="center", fontsize=_WORDS, color=colour)
        last = len(ranges) - 0.42
        for at, (word, value) in enumerate(sorted(marks.items(), key=lambda mark: mark[1])):
            side, gap = ("left", 0.5) if at == len(marks) - 1 else ("right", -0.5)  # words lean away from each other
            axes.axvline(math.log10(value), color=INK, linewidth=1.4, linestyle=(0, (4, 2)), zorder=3)
            axes.text(math.log10(value) + gap, -0.62, word, ha=side, va="bottom", fontsize=_WORDS, color=INK)
        ends = [math.log10(value) for reach in ranges.values() for value in (reach[0], reach[2])]
        axes.set(xlim=(min(ends) - 9, max(ends) + 9), ylim=(last, -0.6), yticks=[])
        _powers(axes, math.ceil(min(ends)), math.floor(max(ends)), 10)
        axes.set_xlabel("size of the number (powers of ten)", fontsize=_WORDS)
        axes.spines["left"].set_visible(False)
        wide = 1 + max(sum(parts) for parts in bits.values())
        left.set(xlim=(-0.3, wide + 0.3), ylim=(last, -0.6), yticks=[], xticks=[])
        for (word, colour), at in zip(_BIT_KINDS, (0, wide * 0.2, wide * 0.53), strict=True):
            left.add_patch(Rectangle((at, last + 0.02), 0.86, 0.13, facecolor=colour, edgecolor=INK, clip_on=False))
            left.text(at + 1.4, last + 0.09, word, fontsize=_WORDS - 1, va="center", color=INK)
        for side in ("left", "bottom"):
            left.spines[side].set_visible(False)
    return figure


def ticks_figure(windows: Sequence[tuple[str, float, float, Mapping[str, Any]]]) -> Figure:
    """Draw every number that each format has in a few windows, a tick each.

    windows: (title, low, high, numbers), where numbers maps a format's name to its numbers in the window or, where
    there are too many to draw, to how many there are.
    """
    with own_look():
        figure = Figure(figsize=(13.5, 4.4), layout="constrained")
        every = figure.subplots(1, len(windows), sharey=True, squeeze=False)[0]
        for axes, (title, low, high, numbers) in zip(every, windows, strict=True):
            for row, (name, found) in enumerate(numbers.items()):
                colour = FORMATS.get(name, GREY)
                many = found if isinstance(found, int) else len(found)
                if isinstance(found, int) or many > MOST_TICKS:
                    axes.barh(row, high - low, 0.5, low, color=colour)
                else:
                    axes.vlines(list(found), row - 0.25, row + 0.25, color=colour, linewidth=2.4)
                    axes.hlines(row, low, high, color=colour, linewidth=1, alpha=0.5)
                axes.text(low, row + 0.44, f"{many:,} numbers", fontsize=_WORDS - 1, color=INK, va="center")
            room = (high - low) * 0.03
            axes.set(xlim=(low - room, high + room), ylim=(len(numbers) - 0.3, -0.5))
            axes.set_title(title, fontsize=_WORDS + 1, color=INK)
            axes.set_xticks([low, high], [f"{low:.3g}", f"{high:.3g}"], fontsize=_WORDS - 1)
            for label, side in zip(axes.get_xticklabels(), ("left", "right"), strict=True):
                label.set_horizontalalignment(side)
            axes.spines["left"].set_visible(False)
            axes.tick_params(axis="y", length=0)
        names = list(windows[0][3])
        every[0].set_yticks(range(len(names)), names, fontsize=_WORDS + 1)
        for label, name in zip(every[0].get_yticklabels(), names, strict=True):
            label.set_color(FORMATS.get(name, GREY))
        figure.supxlabel("the number line, a small piece of it", fontsize=_WORDS, color=INK)
    return figure


def vanishing_figure(rows: Mapping[str, tuple[Any, Any]], scale: float) -> Figure:
    """Draw how large gradients are before and after scaling, over what fp16 can hold.

    rows: title -> (sizes before, sizes after), anything that numpy reads; zeros are left out. scale: what they were
    multiplied by, for the words.
    """
    zero, full, top = -25, -14, 16  # fp16: rounds to 0 up to 2**-25, full precision from 2**-14, inf from about 2**16
    first, last = -46, 20
    edges = np.arange(first, last + 0.5, 1.0)
    with own_look():
        figure = Figure(figsize=(13.5, 2.9 * len(rows) + 0.9), layout="constrained")
        every = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (title, (before, after)) in zip(every, rows.items(), strict=True):
            for low, high, strength in ((first, zero, 0.16), (zero, full, 0.07), (top, last, 0.16)):
                hatch = "xx" if strength > 0.1 else None
                axes.axvspan(low, high, facecolor=tint(WRONG, strength), hatch=hatch, ec=tint(WRONG, 0.26), lw=0)
            shares = [_shares(sizes, edges) for sizes in (before, after)]
            tall = max(0.01, *(float(share.max()) for share in shares))
            _humps(axes, edges, shares, ("as they are", f"x {scale:,.0f}"), tall)
            axes.set(xlim=(first, last), ylim=(0, tall * 1.5))
            axes.set_title(title, fontsize=_WORDS + 1, loc="left", color=INK)
            axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
            axes.tick_params(labelsize=_WORDS - 2)
            box = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1.5}
            for at, word in ((zero - 10.5, "becomes 0"), (zero + 5.5, "fewer digits"), (top + 2, "inf")):
                axes.text(at, tall * 1.34, word, ha="center", fontsize=_WORDS - 1, color=WRONG, bbox=box)
        every[-1].set_xlabel("size of a gradient in fp16 (powers of two)", fontsize=_WORDS)
        _powers(every[-1], -45, 20, 5, base=2)
        figure.supylabel("share of all gradients", fontsize=_WORDS, color=INK)
    return figure


def _bits(axes: Any, row: int, name: str, exponent: int, fraction: int) -> None:
    """Draw a format's bits as boxes with its name above them."""
    kinds = [_BIT_KINDS[0][1]] + [_BIT_KINDS[1][1]] * exponent + [_BIT_KINDS[2][1]] * fraction
    for at, colour in enumerate(kinds):
        axes.add_patch(Rectangle((at, row - 0.14), 0.86, 0.32, facecolor=colour, edgecolor=INK, linewidth=0.8))
    words = f"1 + {exponent} + {fraction} bits"
    axes.text(0, row - 0.22, name, fontsize=_WORDS + 3, va="bottom", color=FORMATS.get(name, GREY))
    axes.text(7, row - 0.22, words, fontsize=_WORDS - 1, va="bottom", color=INK)


def _humps(axes: Any, edges: Any, shares: Sequence[Any], words: Sequence[str], tall: float) -> None:
    """Draw the two histograms, filled and dashed, each with its word above it."""
    dashed: dict[str, Any] = {"color": (*tint(SCALE, 0.45), 0.75), "ec": SCALE, "lw": 2.4, "ls": (0, (4, 1))}
    looks: tuple[dict[str, Any], ...] = ({"color": GRADIENTS, "ec": INK, "lw": 1.0}, dashed)
    for share, word, look, ink in zip(shares, words, looks, (INK, _DARK_SCALE), strict=True):
        filled = np.flatnonzero(share)
        if not filled.size:
            continue
        first, last = filled[0], filled[-1] + 1
        axes.stairs(share[first:last], edges[first : last + 1], fill=True, **look)
        middle = float((share * (edges[:-1] + 0.5)).sum())
        axes.text(middle, tall * 1.06, word, ha="center", va="bottom", fontsize=_WORDS + 1, color=ink)


def _shares(sizes: Any, edges: Any) -> Any:
    """Return the share of the sizes (zeros left out) in each power of two; what lies outside goes to the ends."""
    found = np.asarray(sizes, dtype=float)
    found = found[np.isfinite(found) & (found > 0)]
    powers = np.clip(np.log2(found), edges[0], edges[-1] - 1e-9) if found.size else found
    return np.histogram(powers, edges)[0] / max(1, found.size)


def _powers(axes: Any, low: int, high: int, step: int, base: int = 10) -> None:
    at = [power for power in range(low, high + 1) if power % step == 0]
    words = [f"{base}{str(power).translate(SUPERSCRIPTS)}" if power else "1" for power in at]
    axes.set_xticks(at, words, fontsize=_WORDS)


def _power(value: float) -> str:
    """Write a number as a mantissa of two figures and a power of ten; small ones in full."""
    if 1 <= value < 1e6:
        return f"{value:,.0f}"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa} \u00b7 10{str(int(exponent)).translate(SUPERSCRIPTS)}"

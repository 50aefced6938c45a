"""Bytes by category, stacked: how each category looks wherever memory is drawn, and where its edges lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from .limits import Numbers, numbers
from .palette import ACTIVATIONS, GRADIENTS, GREY, OPTIMIZER, WEIGHTS, tint

CATEGORY_STYLES = {
    "weights": (WEIGHTS, None),
    "gradients": (GRADIENTS, "//"),
    "optimizer": (OPTIMIZER, ".."),
    "activations": (ACTIVATIONS, "\\\\"),
    "inputs": (GREY, "--"),
    "other": (GREY, None),
}
"""Colour and hatch of each category, from the bottom of the stack to the top; unknown ones look like "other"."""
_LARGEST = 1e290
_UNITS = [1024.0**power for power in range(6)]


def stacked(categories: Mapping[str, Iterable[float]], count: int) -> dict[str, tuple[Numbers, Numbers]]:
    """Return the lower and the upper edge of each category at ``count`` points; what is missing counts as 0."""
    heights = {name: np.zeros(count) for name in CATEGORY_STYLES}
    for name, values in categories.items():
        got = np.nan_to_num(numbers(values), posinf=0.0, neginf=0.0)[:count]
        heights[name if name in heights else "other"][: len(got)] += np.clip(got, 0, _LARGEST)
    edges = np.cumsum([np.zeros(count), *heights.values()], axis=0)
    return {name: (edges[at], edges[at + 1]) for at, name in enumerate(heights)}


def style_of(name: str) -> dict[str, object]:
    """Return how the area of a category is drawn."""
    colour, hatch = CATEGORY_STYLES[name]
    strength = 0.5 if colour != GREY else 0.25 if hatch else 0.4
    edge = colour if colour != GREY else "#969696"
    return {"facecolor": tint(colour, strength), "edgecolor": edge, "hatch": hatch, "linewidth": 1.2}


def darker(name: str) -> tuple[float, float, float]:
    """Return the colour in which the category's name is written: dark enough to read on white and on its own area."""
    red, green, blue = tint(CATEGORY_STYLES[name][0], 1)
    return red * 0.7, green * 0.7, blue * 0.7


def byte_ticks(top: float) -> list[float]:
    """Return up to six places from 0 to ``top`` on round numbers of KiB, MiB, GiB or TiB."""
    unit = max((unit for unit in _UNITS if unit <= top / 1.5), default=1.0)
    steps = (256, 512) if 0.97 * top > 999 * unit else (1, 2, 5, 10, 20, 50, 100, 200)  # none is written "0.98 MiB"
    step = next((s * unit for s in steps if top / (s * unit) <= 5.5), top / 4)
    ticks: list[float] = np.arange(0, top * 0.97, step).tolist()
    return ticks


def spread_labels(heights: Mapping[str, float], gap: float, top: float) -> dict[str, float]:
    """Move labels that would lie on each other ``gap`` apart, as little as can be, and none above ``top``."""
    order = sorted(heights, key=lambda name: heights[name])
    placed: list[float] = []
    for name in order:
        placed.append(max(heights[name], placed[-1] + gap if placed else 0.0))
    ceiling = top
    for at in range(len(placed) - 1, -1, -1):
        placed[at] = max(min(placed[at], ceiling), 0.0)
        ceiling = placed[at] - gap
    return dict(zip(order, placed, strict=True))

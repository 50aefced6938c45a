"""Arrows laid head to tail on axes of the caller's own: what each batch, loss or use of a weight adds to ``.grad``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from matplotlib.patches import FancyArrowPatch
from matplotlib.patheffects import withStroke

from ...drawing import FRESH, GRADIENTS, GREY, INK, WEIGHTS

Point = tuple[float, float]

_SHAPE = "simple,head_length=0.7,head_width=0.8,tail_width=0.35"
_AWAY = 20.0  # points from an arrow to its name
_WORDS = {"sum": "#9A6A00", "step": WEIGHTS, "cut": GREY}  # the sum's orange, darker: words need more contrast
_KINDS: dict[str, dict[str, Any]] = {
    "fresh": {"facecolor": FRESH, "edgecolor": INK, "linewidth": 1.6, "mutation_scale": 22, "zorder": 4},
    "cut": {"facecolor": "none", "edgecolor": GREY, "linewidth": 1.8, "linestyle": (0, (3, 1.5)), "mutation_scale": 22},
    "sum": {"facecolor": "none", "edgecolor": GRADIENTS, "linewidth": 3.5, "mutation_scale": 46, "zorder": 3},
    "step": {"facecolor": WEIGHTS, "edgecolor": "white", "linewidth": 1.0, "mutation_scale": 30, "zorder": 5},
}


def head_to_tail(
    axes: Any, start: Sequence[float], arrows: Sequence[Sequence[float]], names: Sequence[str], kind: str = "fresh"
) -> Point:
    """Draw each arrow from where the one before it ended, the first from ``start``; return where the last one ends.

    ``kind`` is "fresh", "cut" (dashed, for what is left out), "sum" (a bold outline) or "step" (the weights' colour).
    A name stands beside its arrow, that of a sum at its tip; "" for none. The limits of the axes are the caller's.
    """
    axes.set_aspect("equal")  # otherwise the arrows would not be at their true angles
    route: list[Point] = [(start[0], start[1])]
    for arrow in arrows:
        route.append((route[-1][0] + arrow[0], route[-1][1] + arrow[1]))
    for (tail, head), name in zip(pairwise(route), names, strict=True):
        if math.dist(tail, head) > 0:
            shape = FancyArrowPatch(tail, head, arrowstyle=_SHAPE, shrinkA=0, shrinkB=0, **_KINDS[kind])
            axes.add_patch(shape)
            _name(axes, tail, head, route, name, kind)
    return route[-1]


def _name(axes: Any, tail: Point, head: Point, route: Sequence[Point], name: str, kind: str) -> None:
    """Write a name beside the middle of its arrow, on the side where the route leaves more room, or beyond its tip."""
    length = math.dist(tail, head)
    x, y = (head[0] - tail[0]) / length, (head[1] - tail[1]) / length
    at = head
    if kind != "sum":
        at, (x, y) = ((tail[0] + head[0]) / 2, (tail[1] + head[1]) / 2), (-y, x)
        aside = [(px - at[0]) * x + (py - at[1]) * y for px, py in route]  # how far to the left each corner lies
        room = [min((abs(far) for far in aside if far * side > 1e-9 * length), default=math.inf) for side in (1, -1)]
        if room[1] > room[0]:
            x, y = -x, -y
    words = axes.annotate(name, at, (x * _AWAY, y * _AWAY), textcoords="offset points", weight="bold", zorder=6)
    words.set(ha="left" if x > 0.4 else "right" if x < -0.4 else "center", va="center", color=_WORDS.get(kind, INK))
    words.set_path_effects([withStroke(linewidth=4, foreground="white")])

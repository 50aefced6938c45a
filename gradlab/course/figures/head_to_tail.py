"""Gradients of two weights head to tail, in sums that keep a share of what is old from update to update."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from ...drawing import BATCH_STYLES, Drawing, PanelBuilder, Path, Side, Spot, add_key, arrow_outline, make_axes
from ...formatting import share_text
from .curves import CourseFigure

_WIDE, _TALL = 380, 330  # CSS pixels of one picture
_LEFT, _TOP, _RIGHT, _BOTTOM = 54.0, 60.0, 372.0, 292.0
_THICK = 8.0


def head_to_tail(gradients: Any, kept: Mapping[str, float]) -> CourseFigure:
    """Lay gradients (updates x 2 weights) head to tail, once for each name in ``kept``, at one scale.

    Each update keeps that share of every older arrow: 1 is a ``.grad`` that is not cleared, 0.9 the buffer of momentum
    0.9. Raises ValueError for gradients that are not of two weights, or for no name.
    """
    fresh = np.asarray(gradients, dtype=np.float64)
    if fresh.ndim != 2 or fresh.shape[1] != 2 or not len(fresh) or not np.isfinite(fresh).all():
        raise ValueError(f"head_to_tail: gradients must be finite and of two weights, got the shape {fresh.shape}")
    if not kept:
        raise ValueError("head_to_tail: kept must name one sum or more, got none")
    ages = np.arange(len(fresh))[::-1, None]
    ends = {name: np.vstack([np.zeros((1, 2)), np.cumsum(share**ages * fresh, axis=0)]) for name, share in kept.items()}
    every = np.vstack(list(ends.values()))
    low, high = every.min(axis=0), every.max(axis=0)
    drawings = [_draw(name, places, low, high) for name, places in ends.items()]
    return CourseFigure(*drawings, title="gradients head to tail")


def _draw(name: str, ends: Any, low: Any, high: Any) -> Drawing:
    panel = PanelBuilder(name, _WIDE, _TALL)
    wide, tall = _RIGHT - _LEFT, _BOTTOM - _TOP
    unit = max(float(((high - low) / (wide, tall)).max()) * 1.12, 1e-12)  # of a weight's gradient, a pixel
    middle = (low + high) / 2
    across = Side(middle[0] - unit * wide / 2, middle[0] + unit * wide / 2, words="gradient of weight 1")
    up = Side(middle[1] - unit * tall / 2, middle[1] + unit * tall / 2, words="gradient of weight 2")
    axes = make_axes((_WIDE, _TALL), _LEFT, _TOP, _RIGHT, _BOTTOM, across, up)
    panel.axes(axes)
    add_key(panel, ("fresh", "stale", "sum"), _LEFT, 40.0, _LEFT)
    places = np.column_stack([axes.x.place(ends[:, 0]), axes.y.place(ends[:, 1])])
    total = ends[-1]
    held, newest = math.hypot(*total), ends[-1] - ends[-2]
    share = float(newest @ total) / held**2 if held else 0.0
    panel.add(Path("sum", arrow_outline(places[0], places[-1], 2.2 * _THICK).ravel(), **BATCH_STYLES["sum"]))
    for at, (tail, head) in enumerate(pairwise(places), start=1):
        kind = "fresh" if at == len(places) - 1 else "stale"
        panel.add(Path(f"arrow {at}", arrow_outline(tail, head, _THICK).ravel(), **BATCH_STYLES[kind]))
    x, y = ((places[-2] + places[-1]) / 2).tolist()
    text = f"newest: {share_text(share)}"
    panel.label("newest", [Spot(text, x + 14, y), Spot(text, x - 14, y, "end"), Spot(text, x, y - 16, "middle")])
    return panel.finish(
        f"{name}: {len(ends) - 1} gradients, a sum of length {held:.2f}, the newest is {share_text(share)} of it."
    )

"""Numbers that a notebook has computed itself, in pictures: curves by update, and gradients laid head to tail."""

from __future__ import annotations

import base64
import math
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...drawing import (
    BATCH_STYLES,
    Axes,
    Drawing,
    PanelBuilder,
    Path,
    Side,
    Spot,
    add_key,
    arrow_outline,
    draw_comparison,
    make_axes,
    to_png,
)
from ...formatting import share_text
from ...scenes import Curve

_WIDE, _TALL = 380, 330  # CSS pixels of one picture
_FRAME = 54.0, 60.0, 8.0, 38.0  # around the arrows
_THICK = 8.0


class CourseFigure:
    """Pictures in a notebook, side by side, with their words under one title."""

    def __init__(self, *drawings: Drawing, title: str = "") -> None:
        """Keep what is drawn; the title of a single picture is its own."""
        self.drawings, self.title = drawings, title or drawings[0].title

    def __repr__(self) -> str:
        # JupyterLab shows the first line of a folded picture's text, which must not give the outcome away.
        return "\n".join([self.title, *(drawing.words.removeprefix(f"{self.title}: ") for drawing in self.drawings)])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        png = to_png(self.drawings, len(self.drawings))
        data = {"image/png": base64.b64encode(png).decode(), "text/plain": repr(self)}
        alt = " ".join(drawing.words for drawing in self.drawings)
        return data, {"image/png": {"width": sum(drawing.width for drawing in self.drawings), "alt": alt}}


def curves(
    lines: Mapping[str, Sequence[float]],
    title: str = "loss",
    *,
    stale: Collection[str] = (),
    mean_of: int = 1,
    first: int = 0,
    events: Mapping[int, str] | None = None,
    counted: str = "updates",
) -> CourseFigure:
    """Draw numbers by update, a line for each name; ``stale`` names those that apply gradients again.

    The first number is the one before any update, at update 0, unless ``first`` names another. Each point is the mean
    of ``mean_of`` numbers and stands at the last of them. ``events`` marks updates: ``{4: "last gradient"}``.
    ``counted`` names what else the axis counts, such as epochs. Raises ValueError for no lines, for an empty one, and
    for a name in ``stale`` that there is not.
    """
    if not lines or not all(len(values) >= max(mean_of, 1) for values in lines.values()):
        raise ValueError(
            f"curves: each of the lines must have {max(mean_of, 1)} numbers or more, got {dict(lines)!r:.200}"
        )
    if unknown := set(stale) - set(lines):
        raise ValueError(f"curves: stale must be among {', '.join(lines)}, got {', '.join(sorted(unknown))}")
    drawn = {name: make_curve(np.asarray(values, dtype=np.float64), mean_of, first) for name, values in lines.items()}
    return CourseFigure(draw_comparison(drawn, title, 760, 340, stale=stale, events=events, counted=counted))


def make_curve(values: Any, mean_of: int = 1, first: int = 0) -> Curve:
    """Return the curve of an array of losses, from update ``first`` on, each a mean of the last ``mean_of``."""
    broken = next(map(int, np.flatnonzero(~np.isfinite(values))), None)
    means = np.convolve(values[:broken], np.ones(mean_of) / mean_of, mode="valid")
    updates = np.arange(len(means)) + mean_of - 1 + first
    listed: list[float] = means.tolist()
    now = listed[-1] if mean_of > 1 and listed else float(values[-1])
    return Curve(updates.tolist(), listed, listed, listed, broken=broken, now=now)


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
    drawings = [_draw_sum(name, places, every) for name, places in ends.items()]
    return CourseFigure(*drawings, title="gradients head to tail")


def _draw_sum(name: str, ends: Any, every: Any) -> Drawing:
    panel = PanelBuilder(name, _WIDE, _TALL)
    axes = equal_axes((_WIDE, _TALL), _FRAME, every, ("gradient of weight 1", "gradient of weight 2"))
    panel.axes(axes)
    add_key(panel, ("fresh", "stale", "sum"), axes.left, 40.0, axes.left)
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


def equal_axes(
    size: tuple[int, int], frame: tuple[float, float, float, float], points: Any, words: tuple[str, str]
) -> Axes:
    """Return axes with as many pixels to a unit along both, so that arrows keep their angles, and all points (n x 2).

    ``size`` is the panel's, and ``frame`` what is kept free at its left, top, right and bottom, in CSS pixels.
    """
    (width, height), (left, top, right, bottom) = size, frame
    room = np.array([width - left - right, height - top - bottom])
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    unit = max(float(((high - low) / room).max()) * 1.12, 1e-12)  # of a point, a pixel
    first, last = (low + high - unit * room) / 2, (low + high + unit * room) / 2
    x, y = (Side(float(first[at]), float(last[at]), words=words[at]) for at in (0, 1))
    return make_axes(size, left, top, width - right, height - bottom, x, y)

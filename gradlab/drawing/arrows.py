"""What each batch added to ``.grad`` of a model with two weights: arrows head to tail, from where the weights are."""

from __future__ import annotations

import math

import numpy as np

from ..formatting import short
from ..scenes import Arrow, Arrows
from .batches import BATCH_STYLES, add_key
from .builder import PanelBuilder
from .labels import Spot
from .limits import LARGEST_DRAWN, Numbers, numbers
from .marks import Dots, Drawing, Path
from .surface import add_surface, surface_of

NAMED = 8
"""Up to so many arrows carry the number of their batch."""
STEPS = (7.0, 5.0, 3.0, 2.0, 1.5, 1.0)
REACH = 0.6
"""Together the arrows reach at most across this share of the picture."""
_KEY = 92.0  # CSS pixels at the right of the axes for the key


def draw_arrows(scene: Arrows, width: int, height: int) -> Drawing:
    """Draw arrows of fresh and stale batches that add up to the bold outline: what ``.grad`` holds."""
    panel = PanelBuilder("gradient in .grad", width, height)
    steps = numbers([edge for a in scene.arrows for edge in (a.dx, a.dy)]).reshape(-1, 2)
    whole = numbers([*scene.earlier, *scene.total]).reshape(2, 2)
    sound = bool(np.isfinite(steps).all() and np.isfinite(whole).all())
    steps, whole = np.nan_to_num(steps, posinf=0, neginf=0), np.nan_to_num(whole, posinf=0, neginf=0)
    with np.errstate(over="ignore"):
        reach = np.clip(np.cumsum([whole[0], *steps], axis=0), -LARGEST_DRAWN, LARGEST_DRAWN)
    factor = fit_factor(scene, np.vstack([reach, whole[1:]]))
    here = np.clip(np.nan_to_num(numbers(scene.weights)), -LARGEST_DRAWN, LARGEST_DRAWN)
    tips = np.clip(here + np.vstack([reach, whole[1:]]) * factor, -LARGEST_DRAWN, LARGEST_DRAWN)
    axes = add_surface(panel, scene.contours, np.vstack([tips, np.nan_to_num(here)]), _KEY)
    start = np.array([axes.x.at(here[0]), axes.y.at(here[1])])
    unit = np.array(
        [(axes.right - axes.left) / (axes.x.high - axes.x.low), -(axes.bottom - axes.top) / (axes.y.high - axes.y.low)]
    )
    # arrows beyond the panel say no more than that they leave it
    limit = 3.0 * (width + height)
    ends = start + np.clip(reach * factor * unit, -limit, limit)
    total = start + np.clip(whole[1] * factor * unit, -limit, limit)
    held = f"what .grad holds: ({short(scene.total[0])}, {short(scene.total[1])})"
    _add_arrow(panel, "sum", start, total, 12.0, "sum", held)
    _add_arrow(panel, "older", start, ends[0], 4.0, "older", "older batches")
    for number, (arrow, tail, head) in enumerate(zip(scene.arrows, ends[:-1], ends[1:], strict=True)):
        kind = "stale" if arrow.stale else "fresh"
        _add_arrow(panel, f"arrow {number}", tail, head, 6.0, kind, arrow_words(arrow), f"batch {arrow.batch}")
    panel.add(Dots("weights", start, size=11.0, fill="weights", stroke="paper", width=1.5, words=_place(scene)))
    left = max(axes.right + 12.0, width - _KEY + 8)
    add_key(panel, ("fresh", "stale", "sum"), left, 42.0)
    said = (
        ("inf or NaN", "in .grad")
        if not sound
        else ("arrows", "true length" if factor == 1 else f"\u00d7 {short(factor)}")
    )
    for at, line in enumerate(said):
        panel.label(f"scale {at}", [Spot(line, left, 112.0 + 16 * at)])
    _add_names(panel, scene, start, ends)
    return panel.finish(_words(scene))


def fit_factor(scene: Arrows, reach: Numbers) -> float:
    """Choose a round factor at which the arrows fit the picture; 1, their true length, wherever that will do."""
    wide = np.array([high - low for low, high in (surface_of(scene.contours).x, surface_of(scene.contours).y)])
    longest = float(np.abs(reach / wide).max(initial=0.0))
    if not 0 < longest < math.inf:
        return 1.0
    best = min(REACH / longest, LARGEST_DRAWN)
    if 1 <= best < 8:
        return 1.0
    power = 10.0 ** math.floor(math.log10(best))
    return next((power * step for step in STEPS if power * step <= best), power)


def arrow_outline(tail: Numbers, head: Numbers, width: float) -> Numbers:
    """Return the corners (7 x 2) of a filled arrow between two points in pixels; none when it has no length."""
    (x0, y0), (x1, y1) = tail.tolist(), head.tolist()
    length = math.hypot(x1 - x0, y1 - y0)
    if not 0.5 < length < 1e9:
        return np.zeros((0, 2))
    ax, ay = (x1 - x0) / length, (y1 - y0) / length
    tip = min(length * 0.7, 1.7 * width)
    nx, ny = x1 - ax * tip, y1 - ay * tip
    half, wing = width / 2, min(width, tip * 0.6 + width / 4)
    return np.array(
        [
            (x0 - ay * half, y0 + ax * half),
            (nx - ay * half, ny + ax * half),
            (nx - ay * wing, ny + ax * wing),
            (x1, y1),
            (nx + ay * wing, ny - ax * wing),
            (nx + ay * half, ny - ax * half),
            (x0 + ay * half, y0 - ax * half),
        ]
    )


def arrow_words(arrow: Arrow) -> str:
    """Say what one batch added: ``batch 38: adds (0.3, -1.2), already applied``."""
    words = f"batch {arrow.batch:,}: adds ({short(arrow.dx)}, {short(arrow.dy)})"
    return f"{words}, already applied" if arrow.stale else words


def _add_arrow(
    panel: PanelBuilder, id: str, tail: Numbers, head: Numbers, width: float, kind: str, words: str, press: str = ""
) -> None:
    corners = arrow_outline(tail, head, width)
    if len(corners):
        panel.add(Path(id, corners.ravel(), words=words, press=press, **BATCH_STYLES[kind]))


def _add_names(panel: PanelBuilder, scene: Arrows, start: Numbers, ends: Numbers) -> None:
    if math.dist(start, ends[0]) > 16:
        panel.label("older word", _aside("older batches", start, ends[0]), role="grey")
    if len(scene.arrows) > NAMED:
        return
    for number, (arrow, tail, head) in enumerate(zip(scene.arrows, ends[:-1], ends[1:], strict=True)):
        if math.dist(tail, head) > 10:
            panel.label(f"arrow name {number}", _aside(str(arrow.batch), tail, head))


def _aside(text: str, tail: Numbers, head: Numbers) -> list[Spot]:
    """Return spots beside the middle of an arrow, on its right and on its left."""
    (x0, y0), (x1, y1) = tail.tolist(), head.tolist()
    length = math.hypot(x1 - x0, y1 - y0) or 1.0
    across, down = -(y1 - y0) / length, (x1 - x0) / length
    middle = (x0 + x1) / 2, (y0 + y1) / 2
    spots = []
    for far in (13.0, -13.0, 22.0, -22.0):
        right = far * across
        anchor = "start" if right > 5 else "end" if right < -5 else "middle"
        spots.append(Spot(text, middle[0] + right, middle[1] + far * down, anchor))
    return spots


def _place(scene: Arrows) -> str:
    return f"the weights: {short(scene.weights[0])}, {short(scene.weights[1])}"


def _words(scene: Arrows) -> str:
    stale = sum(arrow.stale for arrow in scene.arrows)
    count = len(scene.arrows)
    if not count:
        return f"The weights are at {_place(scene).partition(': ')[2]}; .grad holds no batch."
    parts = "; ".join(arrow_words(arrow) for arrow in scene.arrows[-4:])
    used = f", {stale:,} of them already applied" if stale else ""
    arrows = f"{count:,} arrow{'s' * (count != 1)}"
    return f".grad is ({short(scene.total[0])}, {short(scene.total[1])}) from {arrows}{used}: {parts}."

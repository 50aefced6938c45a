"""Pictures of ``.grad``: what each batch contributed to it, as arrows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..formatting import EN_DASH, batches_text, share_of_sum, share_text, short, spans_text
from ..scenes import Arrow, Arrows
from .axes import LARGEST_DRAWN, Axes, Numbers, Side, make_axes, nice_step, numbers
from .builder import PanelBuilder, make_box
from .labels import Box, Spot, text_width
from .landscape import add_surface, surface_of
from .marks import Dots, Drawing, Path

BATCH_STYLES: dict[str, dict[str, Any]] = {
    "fresh": {"fill": "fresh", "stroke": "ink", "width": 1.0},
    "stale": {"fill": "stale", "stroke": "ink", "width": 1.0, "hatch": "//", "dash": "dashed"},
    "outdated": {"fill": "faint", "stroke": "ink", "width": 1.0, "hatch": "..", "dash": "dotted"},
    "other": {"fill": "paper", "stroke": "grey", "width": 1.2, "dash": "dashed"},
    "sum": {"fill": "faint", "stroke": "ink", "width": 2.2},
}
"""How a contribution to ``.grad`` is drawn. Stale: an optimizer step has already used it. Outdated: no step has used it
yet, and the weights have moved since its forward."""
_IN_FULL = {"stale": "stale (already used)", "sum": "their sum, .grad"}
_SWATCH, _GAP = 23.0, 16.0  # CSS pixels from a swatch to the end of it, and between two entries in a row


def add_key(panel: PanelBuilder, looks: Sequence[str], left: float, top: float, right: float | None = None) -> None:
    """Add a swatch with its words for each look, below each other; in a row if it may reach to ``right``."""
    words = list(looks)
    if right is not None:
        in_full = [_IN_FULL.get(look, look) for look in looks]
        if left + sum(_SWATCH + text_width(word, 12.0) + _GAP for word in in_full) - _GAP <= right:
            words = in_full
    x, y = left, top
    for look, word in zip(looks, words, strict=True):
        if panel.label(f"key {look} word", [Spot(word, x + _SWATCH, y)]):
            box = make_box(f"key {look}", x, y - 6, x + 18, y + 6, **BATCH_STYLES[look])
            panel.add(box)
            panel.placer.take([Box(x, y - 6, x + 18, y + 6)])
        if right is None:
            y += 20.0
        else:
            x += _SWATCH + text_width(word, 12.0) + _GAP


NAMED = 9
"""Up to so many arrows carry the number of their batch."""
_NAMED_IN_FULL = 3  # fresh arrows
STEPS = (7.0, 5.0, 3.0, 2.0, 1.5, 1.0)
MOST_ACROSS = 0.6
"""On contours the arrows together reach at most across this share of the picture."""
THINNEST, THICKEST = 5.0, 18.0
"""CSS pixels across an arrow."""
_KEY = 92.0  # CSS pixels at the right of the contours for the key
_GRID = 40.0  # CSS pixels by which the plane moves at a time, so that it moves rarely
_LADDER = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_TOLD = 4  # arrows in the words of the panel


def draw_arrows(scene: Arrows, width: int, height: int) -> Drawing:
    """Draw arrows of fresh and stale batches that add up to the bold outline: what ``.grad`` holds."""
    panel = PanelBuilder("gradient in .grad", width, height)
    panel.corner(f"holds {batches_text(scene.holds, EN_DASH)}", "")
    ends = arrow_ends(scene)
    sound = bool(np.isfinite([*scene.total, *(edge for a in scene.arrows for edge in (a.x, a.y))]).all())
    if scene.contours is None:
        start, unit = _add_plane(panel, ends)
        said = [] if sound else ["inf or NaN in .grad"]
        said += [] if scene.measured else ["not measured batch by batch"]
        said += ["no arrow: .grad is None or 0"] if sound and not ends.any() and not scene.arrows else []
    else:
        start, unit, said = _add_contours(panel, scene, ends, sound)
    places, thick = add_arrows(panel, scene, ends, start, unit)
    if scene.contours is not None:
        look: dict[str, Any] = {"fill": "weights", "stroke": "paper", "width": 1.5}
        words = f"the weights: {short(scene.weights[0])}, {short(scene.weights[1])}"
        panel.add(Dots("weights", start, size=11.0, words=words, moves=True, **look))
    for at, line in enumerate(said):
        y = 112.0 + 16 * at
        spot = Spot(line, width / 2, y, "middle") if scene.contours is None else Spot(line, width - _KEY + 8, y)
        panel.label(f"scale {at}", [spot])
    add_arrow_names(panel, scene, places, thick)
    return panel.finish(_words(scene))


def arrow_ends(scene: Arrows) -> Numbers:
    """Return the ends of arrows laid head to tail from (0, 0), and then that of their sum (arrows + 2 x 2)."""
    steps = numbers([edge for a in scene.arrows for edge in (a.x, a.y)]).reshape(-1, 2)
    steps, total = (np.nan_to_num(each, posinf=0, neginf=0) for each in (steps, numbers(scene.total)))
    with np.errstate(over="ignore"):
        ends = np.clip(np.cumsum([(0.0, 0.0), *steps], axis=0), -LARGEST_DRAWN, LARGEST_DRAWN)
    return np.vstack([ends, total[None]])


def add_arrows(
    panel: PanelBuilder, scene: Arrows, ends: Numbers, start: Numbers, unit: Numbers
) -> tuple[Numbers, float]:
    """Add the sum and the arrows in front of it, from the place ``start`` on.

    ``ends`` are those of ``arrow_ends``, and ``unit`` is how many pixels they have along both axes. Returns the places
    of the arrows' ends and how thick an arrow is, for ``add_arrow_names``.
    """
    limit = 3.0 * (panel.width + panel.height)  # arrows beyond the panel say no more than that they leave it
    *places, tip = start + np.clip(ends * unit, -limit, limit)
    held = f"what .grad holds: |grad| {short(math.hypot(*scene.total))}"
    longest = float(np.hypot(*np.diff([start, *places, start, tip], axis=0).T).max())
    thick = max(min(min(panel.width, panel.height) / 32, longest / 8, THICKEST), THINNEST)
    _add_arrow(panel, "sum", start, tip, 2.2 * thick, "sum", words=held)
    for number, (arrow, tail, head) in enumerate(zip(scene.arrows, places[:-1], places[1:], strict=True)):
        kind = "other" if arrow.batches is None else "stale" if arrow.stale else "fresh"
        press = f"batch {arrow.batches[0]}" if arrow.batches and arrow.batches[0] == arrow.batches[1] else ""
        done = "applied" if arrow.applied else ""
        press = "" if arrow.names else press
        told = {"words": arrow_words(arrow), "press": press, "done": done}
        _add_arrow(panel, f"arrow {number}", tail, head, thick, kind, **told)
    return np.array(places), thick


def _add_plane(panel: PanelBuilder, points: Numbers) -> tuple[Numbers, Numbers]:
    """Add axes that hold the points; return the origin's place, and pixels a unit along both."""
    axes = plane_axes(panel.width, panel.height, points)
    panel.axes(axes)
    _keep_names_inside(panel, axes)
    add_key(panel, ("fresh", "stale", "sum"), axes.left, 40.0, axes.right)
    per_unit = (axes.right - axes.left) / (axes.x.high - axes.x.low)
    return np.array([axes.x.at(0.0), axes.y.at(0.0)]), np.array([per_unit, -per_unit])


def _keep_names_inside(panel: PanelBuilder, axes: Axes) -> None:
    panel.placer.take([Box(0, axes.top, axes.left, axes.bottom), Box(axes.left, axes.bottom, axes.right, panel.height)])


def plane_axes(width: float, height: float, points: Numbers) -> Axes:
    """Return axes with as many pixels to a unit along both, in whole steps, that hold the origin and some points."""
    left, top, right, bottom = 54.0, 56.0, width - 16.0, height - 38.0
    low = np.minimum(points.min(axis=0, initial=0.0), 0.0)
    high = np.maximum(points.max(axis=0, initial=0.0), 0.0)
    need = max((high[0] - low[0]) / (right - left - _GRID), (high[1] - low[1]) / (bottom - top - _GRID))
    unit = nice_step(need, _LADDER) if need > 0 else 1.0 / (right - left)  # of the gradient, a pixel
    x = -math.ceil(-low[0] / (unit * _GRID)) * unit * _GRID
    tall, grid = unit * (bottom - top), unit * _GRID / 2
    y = round(((low[1] + high[1]) / 2 - tall / 2) / grid) * grid  # what is drawn lies in the middle
    along = Side(x, x + unit * (right - left), words="along the sum")
    return make_axes((width, height), left, top, right, bottom, along, Side(y, y + tall, words="across"))


def _add_contours(
    panel: PanelBuilder, scene: Arrows, points: Numbers, sound: bool
) -> tuple[Numbers, Numbers, list[str]]:
    """Add the contours and the key; return the weights' place, pixels a unit, and how the arrows are scaled."""
    assert scene.contours is not None
    factor = fit_factor(scene, points)
    here = np.clip(np.nan_to_num(numbers(scene.weights)), -LARGEST_DRAWN, LARGEST_DRAWN)
    tips = np.clip(here + points * factor, -LARGEST_DRAWN, LARGEST_DRAWN)
    axes = add_surface(panel, scene.contours, np.vstack([tips, here]), _KEY)
    _keep_names_inside(panel, axes)
    unit = np.array(
        [(axes.right - axes.left) / (axes.x.high - axes.x.low), -(axes.bottom - axes.top) / (axes.y.high - axes.y.low)]
    )
    add_key(panel, ("fresh", "stale", "sum"), max(axes.right + 12.0, panel.width - _KEY + 8), 42.0)
    said = ["arrows", "true length" if factor == 1 else f"\u00d7 {short(factor)}"]
    if not sound:
        said = ["inf or NaN", "in .grad"]
    return np.array([axes.x.at(here[0]), axes.y.at(here[1])]), unit * factor, said


def fit_factor(scene: Arrows, reach: Numbers) -> float:
    """Choose a round factor at which the arrows fit the picture; 1, their true length, wherever that will do."""
    assert scene.contours is not None
    wide = np.array([high - low for low, high in (surface_of(scene.contours).x, surface_of(scene.contours).y)])
    longest = float(np.abs(reach / wide).max(initial=0.0))
    if not 0 < longest < math.inf:
        return 1.0
    best = min(MOST_ACROSS / longest, LARGEST_DRAWN)
    if 1 <= best < 2.5:
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
    """Say what an arrow stands for: ``batch 38: 16% of the sum, already applied``."""
    who = "not from a backward" if arrow.batches is None else batches_text([arrow.batches], EN_DASH)
    who = arrow.names[0] if arrow.names else who
    return f"{who}: {share_of_sum(arrow.share)}{', already applied' if arrow.stale else ''}"


def _add_arrow(
    panel: PanelBuilder, id: str, tail: Numbers, head: Numbers, width: float, kind: str, **told: Any
) -> None:
    corners = arrow_outline(tail, head, width)
    if len(corners):
        panel.add(Path(id, corners.ravel(), moves=True, **BATCH_STYLES[kind], **told))
        panel.placer.take([_cover(tail, head, width)])


def _cover(tail: Numbers, head: Numbers, width: float) -> Box:
    """Return what an arrow covers: a slanted box as wide as its tip."""
    (x0, y0), (x1, y1) = tail.tolist(), head.tolist()
    length = math.hypot(x1 - x0, y1 - y0)
    ax, ay = (x1 - x0) / length * width * 0.9, (y1 - y0) / length * width * 0.9
    corners = ((x0 - ay, y0 + ax), (x1 - ay, y1 + ax), (x1 + ay, y1 - ax), (x0 + ay, y0 - ax))
    across, down = zip(*corners, strict=True)
    return Box(min(across), min(down), max(across), max(down), corners)


def add_arrow_names(panel: PanelBuilder, scene: Arrows, places: Numbers, thick: float, *, backed: bool = False) -> None:
    """Write beside each arrow what it is, the newest first, where they are few."""
    if len(scene.arrows) > NAMED:
        return
    crowded = sum(not arrow.stale for arrow in scene.arrows) > _NAMED_IN_FULL
    shafts = list(pairwise(places))
    for number, (arrow, (tail, head)) in reversed(list(enumerate(zip(scene.arrows, shafts, strict=True)))):
        if math.dist(tail, head) <= 10:
            continue
        name = "other" if arrow.batches is None else spans_text([arrow.batches], EN_DASH)
        texts = (f"{name}: {share_text(arrow.share)}", name) if not abs(arrow.share) >= 100 else (name,)
        if arrow.names:
            texts = tuple(arrow.names[-1:] if crowded else arrow.names)
        spots = [spot for text in texts for spot in _aside(text, tail, head, thick)]
        if arrow.names:  # which may be alike, so each must be nearest to its own arrow
            others = shafts[:number] + shafts[number + 1 :]
            spots = [s for s in spots if all(_distance(s, tail, head) < _distance(s, *other) for other in others)]
        panel.label(f"arrow name {number}", spots, backed=backed)


def _distance(spot: Spot, tail: Numbers, head: Numbers) -> float:
    """Return how far the near end of a label is from an arrow."""
    (x0, y0), (x1, y1) = tail.tolist(), head.tolist()  # of two numbers each: numpy takes ten times as long
    across, down, x, y = x1 - x0, y1 - y0, spot.x - x0, spot.y - y0
    share = min(max((x * across + y * down) / max(across**2 + down**2, 1e-9), 0.0), 1.0)
    return math.hypot(x - share * across, y - share * down)


def _aside(text: str, tail: Numbers, head: Numbers, thick: float) -> list[Spot]:
    """Return spots beside an arrow: near its middle first, on its right and on its left, then farther away."""
    (x0, y0), (x1, y1) = tail.tolist(), head.tolist()
    length = math.hypot(x1 - x0, y1 - y0) or 1.0
    across, down = -(y1 - y0) / length, (x1 - x0) / length
    spots = []
    for far in (thick + 9, 2.2 * thick + 10, 3.5 * thick + 12):
        for along in (0.5, 0.3, 0.7):
            x, y = x0 + along * (x1 - x0), y0 + along * (y1 - y0)
            for right in (far, -far):
                beside = right * across
                anchor = "start" if beside > 5 else "end" if beside < -5 else "middle"
                spots.append(Spot(text, x + beside, y + right * down, anchor))
    return spots


def _words(scene: Arrows) -> str:
    if not scene.holds:
        return ".grad holds no batch."
    norm = f"|grad| {short(math.hypot(*scene.total))} holds {batches_text(scene.holds, EN_DASH)}"
    if not scene.measured:
        return f"{norm}. What each of them contributed was not measured."
    told = [arrow_words(arrow) for arrow in reversed(scene.arrows[-_TOLD:])]
    rest = scene.arrows[:-_TOLD]
    if rest:
        told.append(f"all before: {share_text(math.fsum(arrow.share for arrow in rest))}")
    return f"{norm}. {'; '.join(told)}."

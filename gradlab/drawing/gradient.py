"""Pictures of ``.grad``: what each batch contributed to it, as arrows laid head to tail, their sum behind them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..formatting import EN_DASH, batches_text, share_of_sum, share_text, short, spans_text
from ..scenes import Arrows, BatchArrow
from .landscape import surface_axes, surface_marks, surface_of
from .limits import LARGEST_DRAWN, Numbers, nice_step, numbers
from .marks import Arrow, Axes, Axis, Dots, Drawing, Key, Mark, Text

BATCH_STYLES: dict[str, dict[str, Any]] = {
    "fresh": {"fill": "fresh", "stroke": "ink"},
    "stale": {"fill": "stale", "stroke": "ink", "hatch": "//", "dash": "dashed"},
    "other": {"fill": "paper", "stroke": "grey", "line": 1.2, "dash": "dashed"},
    "sum": {"fill": "faint", "stroke": "ink", "line": 2.2},
}
"""How a contribution to ``.grad`` is drawn, as fields of an Arrow. Stale: an optimizer step has already used it."""
_KEY_TEXTS = {"stale": ("stale (already used)", "stale"), "sum": ("their sum, .grad", "sum")}
NAMED = 9
"""Up to this many arrows carry the number of their batch."""
_NAMED_IN_FULL = 3  # fresh arrows
STEPS = (7.0, 5.0, 3.0, 2.0, 1.5, 1.0)
MOST_ACROSS = 0.6
"""On contours the arrows together reach at most across this share of the picture."""
SUM_WIDTH = 2.2
"""Of the arrow of the sum, in units of the others'."""
_LADDER = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_IN_WORDS = 4  # arrows in the words of the panel


def batch_key(looks: Sequence[str] = ("fresh", "stale", "sum")) -> tuple[Key, ...]:
    """Return the key of these looks of ``BATCH_STYLES``."""
    entries = []
    for look in looks:
        style = {"width" if name == "line" else name: value for name, value in BATCH_STYLES[look].items()}
        entries.append(Key(_KEY_TEXTS.get(look, (look,)), **style))
    return tuple(entries)


def draw_arrows(scene: Arrows) -> Drawing:
    """Draw arrows of fresh and stale batches that add up to the bold outline: what ``.grad`` holds."""
    ends = arrow_ends(scene)
    sound = bool(np.isfinite([*scene.total, *(edge for a in scene.arrows for edge in (a.x, a.y))]).all())
    notice = "" if sound else "inf or NaN in .grad"
    corner = [f"holds {batches_text(scene.holds, EN_DASH)}"] if scene.holds else []
    marks: list[Mark] = []
    if scene.contours is None:
        start, factor, axes = np.zeros(2), 1.0, plane_axes(ends)
        if not scene.measured:
            notice = notice or "not measured batch by batch"
        elif sound and not ends.any() and not scene.arrows:
            notice = "no arrow: .grad is None or 0"
    else:
        factor = fit_factor(scene, ends)
        start = np.clip(np.nan_to_num(numbers(scene.weights)), -LARGEST_DRAWN, LARGEST_DRAWN)
        tips = np.clip(start + ends * factor, -LARGEST_DRAWN, LARGEST_DRAWN)
        axes, outside = surface_axes(scene.contours, np.vstack([tips, start]))
        notice = notice or outside
        marks += surface_marks(scene.contours)
        corner.append("arrows true length" if factor == 1 else f"arrows \u00d7 {short(factor)}")
        corner = [" \u00b7 ".join(corner), corner[-1]]
    marks += arrow_marks(scene, start, factor)
    if scene.contours is not None:
        words = f"the weights: {short(scene.weights[0])}, {short(scene.weights[1])}"
        look: dict[str, Any] = {"size": 11.0, "fill": "weights", "stroke": "paper", "width": 1.5}
        marks.append(Dots("weights", start, words=words, moves=True, **look))
    marks += arrow_names(scene)
    return Drawing(
        "gradient in .grad", marks, (axes,), _words(scene), corner=tuple(corner), key=batch_key(), notice=notice
    )


def arrow_ends(scene: Arrows) -> Numbers:
    """Return the ends of arrows laid head to tail from (0, 0), and then that of their sum (arrows + 2 x 2)."""
    steps = numbers([edge for a in scene.arrows for edge in (a.x, a.y)]).reshape(-1, 2)
    steps, total = (np.nan_to_num(each, posinf=0, neginf=0) for each in (steps, numbers(scene.total)))
    with np.errstate(over="ignore"):
        ends = np.clip(np.cumsum([(0.0, 0.0), *steps], axis=0), -LARGEST_DRAWN, LARGEST_DRAWN)
    return np.vstack([ends, total[None]])


def arrow_marks(scene: Arrows, start: Any = (0.0, 0.0), factor: float = 1.0) -> list[Mark]:
    """Return the sum and the arrows in front of it, from ``start`` on, ``factor`` times as long as they are."""
    *places, tip = np.clip(np.asarray(start) + arrow_ends(scene) * factor, -LARGEST_DRAWN, LARGEST_DRAWN)
    words = f"what .grad holds: |grad| {short(math.hypot(*scene.total))}"
    ends = np.concatenate([places[0], tip])
    marks: list[Mark] = [Arrow("sum", ends, SUM_WIDTH, words=words, moves=True, **BATCH_STYLES["sum"])]
    for number, (arrow, tail, head) in enumerate(zip(scene.arrows, places[:-1], places[1:], strict=True)):
        kind = "other" if arrow.batches is None else "stale" if arrow.stale else "fresh"
        single = arrow.batches is not None and arrow.batches[0] == arrow.batches[1] and not arrow.names
        marks.append(
            Arrow(
                f"arrow {number}",
                np.concatenate([tail, head]),
                words=arrow_words(arrow),
                press=f"batch {arrow.batches[0]}" if single and arrow.batches else "",
                moves=True,
                done="applied" if arrow.applied else "",
                **BATCH_STYLES[kind],
            )
        )
    return marks


def plane_axes(ends: Numbers) -> Axes:
    """Return axes with a unit as long along both, that hold the origin and some points, on round limits."""
    low, high = np.minimum(ends.min(axis=0, initial=0.0), 0.0), np.maximum(ends.max(axis=0, initial=0.0), 0.0)
    grid = nice_step(max(float(np.max(high - low)), 1e-12), _LADDER) / 8
    left, right = math.floor(low[0] / grid) * grid, (math.ceil(high[0] / grid) + 1) * grid
    fine = grid / 2
    middle, half = round((low[1] + high[1]) / 2 / fine) * fine, math.ceil((high[1] - low[1]) / grid + 1) * fine
    across = Axis(middle - half, middle + half, words="across")
    return Axes(Axis(left, right, words="along the sum"), across, equal="fill")


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


def arrow_words(arrow: BatchArrow) -> str:
    """Return what an arrow stands for: ``batch 38: 16% of the sum, already applied``."""
    name = "not from a backward" if arrow.batches is None else batches_text([arrow.batches], EN_DASH)
    name = arrow.names[0] if arrow.names else name
    return f"{name}: {share_of_sum(arrow.share)}{', already applied' if arrow.stale else ''}"


def arrow_names(scene: Arrows) -> list[Mark]:
    """Return what is written beside each arrow, the newest first, where they are few."""
    if len(scene.arrows) > NAMED:
        return []
    crowded = sum(not arrow.stale for arrow in scene.arrows) > _NAMED_IN_FULL
    names: list[Mark] = []
    for number, arrow in reversed(list(enumerate(scene.arrows))):
        name = "other" if arrow.batches is None else spans_text([arrow.batches], EN_DASH)
        texts: tuple[str, ...] = (
            (f"{name}: {share_text(arrow.share)}", name) if not abs(arrow.share) >= 100 else (name,)
        )
        if arrow.names:
            texts = tuple(arrow.names[-1:] if crowded else arrow.names)
        names.append(Text(f"arrow name {number}", texts, of=f"arrow {number}", where="beside", backed=True))
    return names


def _words(scene: Arrows) -> str:
    if not scene.holds:
        return ".grad holds no batch."
    norm = f"|grad| {short(math.hypot(*scene.total))} holds {batches_text(scene.holds, EN_DASH)}"
    if not scene.measured:
        return f"{norm}. What each of them contributed was not measured."
    parts = [arrow_words(arrow) for arrow in reversed(scene.arrows[-_IN_WORDS:])]
    earlier = scene.arrows[:-_IN_WORDS]
    if earlier:
        parts.append(f"all before: {share_text(sum(arrow.share for arrow in earlier))}")
    return f"{norm}. {'; '.join(parts)}." if parts else f"{norm}."

"""Pictures of ``.grad``: what each batch contributed to it, as arrows laid head to tail, their sum behind them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..formatting import EN_DASH, batches_text, share_of_sum, share_text, short, spans_text
from ..scenes import Arrows, BatchArrow
from .landscape import Surface, surface_axes, surface_marks, surface_of
from .limits import LARGEST_DRAWN, Numbers, nice_step, numbers
from .marks import Arrow, Axes, Axis, Dots, Drawing, Key, Mark, Text, draw

BATCH_STYLES: dict[str, dict[str, Any]] = {
    "added": {"fill": "paper", "stroke": "fresh-text", "line": 2.0},
    "applied": {"fill": "fresh", "stroke": "ink"},
    "reused": {"fill": "reused", "stroke": "ink", "hatch": "//", "dash": "dashed"},
    "other": {"fill": "paper", "stroke": "grey", "line": 1.2, "dash": "dashed"},
    "sum": {"fill": "faint", "stroke": "ink", "line": 2.2},
}
"""How a contribution to ``.grad`` is drawn, as fields of an Arrow, by how many optimizer steps have applied it."""
_APPLIED = ("added", "applied", "reused")  # never, once, more than once
_KEY_TEXTS = {
    "added": ("not applied yet", "new"),
    "applied": ("applied once", "applied"),
    "reused": ("applied again", "again"),
    "sum": ("their sum, .grad", "sum"),
}
_NAMED, _NAMED_IN_FULL = 9, 3  # arrows that carry the number of their batch, and fresh arrows with all their words
_STEPS = (7.0, 5.0, 3.0, 2.0, 1.5, 1.0)
_MOST_ACROSS = 0.6  # of a picture with contours, for all arrows together
_SUM_WIDTH = 2.2  # of the arrow of the sum, in units of the others'
_LADDER = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_IN_WORDS = 4  # arrows in the words of the panel


def batch_key(names: Sequence[str] = (*_APPLIED, "sum")) -> tuple[Key, ...]:
    """Return the key of these styles of ``BATCH_STYLES``."""
    styles = {name: {"width" if key == "line" else key: v for key, v in BATCH_STYLES[name].items()} for name in names}
    return tuple(Key(_KEY_TEXTS.get(name, (name,)), **style) for name, style in styles.items())


@draw.register
def draw_arrows(scene: Arrows) -> Drawing:
    """Draw arrows of batches, by how often they were applied, that add up to the bold outline: what ``.grad`` holds."""
    ends = arrow_ends(scene)
    sound = bool(np.isfinite([scene.total, *((arrow.x, arrow.y) for arrow in scene.arrows)]).all())
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
        factor = _fit_factor(surface_of(scene.contours), ends)
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
        marks.append(Dots("weights", start, "circle", 11.0, "weights", "paper", 1.5, words, moves=True))
    marks += arrow_names(scene)
    words, key = _words(scene), batch_key()
    return Drawing("gradient in .grad", marks, (axes,), words, corner=tuple(corner), key=key, notice=notice)


def arrow_ends(scene: Arrows) -> Numbers:
    """Return the ends of arrows laid head to tail from (0, 0), and then that of their sum (arrows + 2 x 2)."""
    steps = numbers([(arrow.x, arrow.y) for arrow in scene.arrows]).reshape(-1, 2)
    steps, total = (np.nan_to_num(each, posinf=0, neginf=0) for each in (steps, numbers(scene.total)))
    with np.errstate(over="ignore"):
        ends = np.clip(np.cumsum([(0.0, 0.0), *steps], axis=0), -LARGEST_DRAWN, LARGEST_DRAWN)
    return np.vstack([ends, total[None]])


def arrow_marks(scene: Arrows, start: Any = (0.0, 0.0), factor: float = 1.0) -> list[Mark]:
    """Return the sum and the arrows in front of it, from ``start`` on, ``factor`` times as long as they are."""
    *joints, tip = np.clip(np.asarray(start) + arrow_ends(scene) * factor, -LARGEST_DRAWN, LARGEST_DRAWN)
    words = f"what .grad holds: |grad| {short(math.hypot(*scene.total))}"
    ends = np.concatenate([joints[0], tip])
    marks: list[Mark] = [Arrow("sum", ends, _SUM_WIDTH, words=words, moves=True, **BATCH_STYLES["sum"])]
    for number, arrow in enumerate(scene.arrows):
        first, last = arrow.batches or (0, 1)
        look = dict(BATCH_STYLES["other" if arrow.batches is None else batch_style(arrow.applied[0])])
        look |= {"press": f"batch {first}" if first == last and not arrow.names else "", "moves": True}
        ends = np.concatenate(joints[number : number + 2])
        marks.append(Arrow(f"arrow {number}", ends, words=arrow_words(arrow), **look))
    return marks


def batch_style(applied: int) -> str:
    """Return the style of what so many steps have applied."""
    return _APPLIED[min(applied, 2)]


def plane_axes(ends: Numbers) -> Axes:
    """Return axes with a unit as long along both, that hold the origin and some points, on round limits."""
    low, high = np.minimum(ends.min(axis=0, initial=0.0), 0.0), np.maximum(ends.max(axis=0, initial=0.0), 0.0)
    grid = nice_step(max(float(np.max(high - low)), 1e-12), _LADDER) / 8
    left, right = math.floor(low[0] / grid) * grid, (math.ceil(high[0] / grid) + 1) * grid
    fine = grid / 2
    middle, half = round((low[1] + high[1]) / 2 / fine) * fine, math.ceil((high[1] - low[1]) / grid + 1) * fine
    across = Axis(middle - half, middle + half, words="across")
    return Axes(Axis(left, right, words="along the sum"), across, equal="fill")


def _fit_factor(surface: Surface, ends: Numbers) -> float:
    """Choose a round factor at which the arrows fit the picture; 1, their true length, wherever that will do."""
    longest = float(np.abs(ends / np.diff([surface.x, surface.y]).T).max(initial=0.0))
    if not 0 < longest < math.inf:
        return 1.0
    best = min(_MOST_ACROSS / longest, LARGEST_DRAWN)
    if 1 <= best < 2.5:
        return 1.0
    power = 10.0 ** math.floor(math.log10(best))
    return next((power * step for step in _STEPS if power * step <= best), power)


def arrow_words(arrow: BatchArrow) -> str:
    """Return what an arrow stands for: ``batch 38: 16% of the sum, already applied``."""
    batches = "not from a backward" if arrow.batches is None else batches_text([arrow.batches], EN_DASH)
    name = arrow.names[0] if arrow.names else batches
    return f"{name}: {share_of_sum(arrow.share)}, {applied_words(*arrow.applied)}"


def applied_words(fewest: int, most: int = 0) -> str:
    """Say how many steps have applied a batch: ``not applied yet``, ``applied once``, ``applied 33 to 61 times``."""
    if max(fewest, most) < 2:
        return ("not applied yet", "applied once")[fewest]
    return f"applied {fewest:,} to {most:,} times" if fewest < most else f"applied {fewest:,} times"


def arrow_names(scene: Arrows) -> list[Mark]:
    """Return what is written beside each arrow, the newest first, where they are few: "260", "259 \u00d7 2"."""
    if len(scene.arrows) > _NAMED:
        return []
    crowded = sum(arrow.applied[0] < 2 for arrow in scene.arrows) > _NAMED_IN_FULL
    names: list[Mark] = []
    for number, arrow in reversed(list(enumerate(scene.arrows))):
        name = "other" if arrow.batches is None else spans_text([arrow.batches], EN_DASH)
        times = f" \u00d7 {spans_text([arrow.applied], EN_DASH)}" if arrow.applied[0] > 1 else ""
        texts = [*arrow.names][-1 if crowded else 0 :] or [name + times, name]
        names.append(Text(f"arrow name {number}", tuple(texts), of=f"arrow {number}", where="beside", backed=True))
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

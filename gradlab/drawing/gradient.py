"""Pictures of ``.grad``: contributions of batches as arrows laid head to tail, in front of an arrow for their sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..formatting import EN_DASH, batches_text, share_of_sum, share_text, short, spans_text
from ..scenes import BEFORE, BESIDE, Arrows, BatchArrow, Contours, Landscape, needed_reach
from .landscape import Surface, path_marks, surface_axes, surface_marks, surface_of
from .limits import LARGEST_DRAWN, Numbers, numbers
from .marks import Arrow, Axes, Axis, Drawing, Key, Mark, Text, draw

BATCH_STYLES: dict[str, dict[str, Any]] = {
    "added": {"fill": "paper", "stroke": "fresh-text", "line": 2.0},
    "applied": {"fill": "fresh", "stroke": "ink"},
    "reused": {"fill": "reused", "stroke": "ink", "hatch": "//", "dash": "dashed"},
    "other": {"fill": "paper", "stroke": "grey", "line": 1.2, "dash": "dashed"},
    "sum": {"fill": "faint", "stroke": "ink", "line": 2.2},
}
"""Name of a style -> fields of an Arrow. "other" is for parts of ``.grad`` that are not from a backward pass."""
_APPLIED = ("added", "applied", "reused")  # styles of contributions that no step, one step, or several steps applied
_KEY_TEXTS = {
    "added": ("not applied yet", "new"),
    "applied": ("applied once", "applied once", "once"),
    "reused": ("applied again", "applied again", "again"),
    "sum": ("sum, .grad", "sum, .grad", "sum"),
}
_NEXT_STEP = Key(("next step",), fill="weights")
_MAX_LABELLED = 9  # number of arrows above which no arrow has a label
_MAX_FULLY_LABELLED = 3  # labels are short if more arrows than this were applied at most once
_ROUND_FACTORS = (7.0, 5.0, 3.0, 2.0, 1.5, 1.0)
_MAX_SHARE = 0.5  # share of the shorter range of the contours that all arrows together may take
_TRUE_FROM = 0.6  # smallest factor that is rounded up to 1, so that arrows have their true length
_SUM_WIDTH = 2.2  # width of the sum's arrow, in units of the other arrows' width
_SHORTEST_YARDSTICK = 0.02  # length of the shortest yardstick that is drawn, in units of the x axis's length
_IN_FRONT = "lowest", "start"  # ids of the landscape's marks that are drawn in front of the arrows
_MOST_DESCRIBED = 4  # number of newest arrows that the description of the panel lists


def batch_key(names: Sequence[str] = (*_APPLIED, "sum")) -> tuple[Key, ...]:
    """Return the entries of a key (legend) for ``names``, which are names of styles in ``BATCH_STYLES``."""
    return tuple(Key(_KEY_TEXTS.get(name, (name,)), **batch_area(name)) for name in names)


def batch_area(name: str) -> dict[str, Any]:
    """Return a style in ``BATCH_STYLES`` as fields of an Area or a Key, where ``width`` is the width of the outline."""
    return {"width" if field == "line" else field: value for field, value in BATCH_STYLES[name].items()}


@draw.register
def draw_arrows(scene: Arrows) -> Drawing:
    """Draw contributions to ``.grad`` as arrows, styled by how often steps applied them, and the sum as an outline."""
    ends = arrow_ends(scene)
    sound = bool(np.isfinite([scene.total, *((arrow.x, arrow.y) for arrow in scene.arrows)]).all())
    notice = "" if sound else "inf or NaN in .grad"
    corner = [f"holds {batches_text(scene.holds, EN_DASH)}"] if scene.holds else []
    if scene.contours is None:
        axes = plane_axes(scene.reach or max(needed_reach(ends.tolist(), flat=True)), scene.elements)
        marks = [*_yardstick(scene.one_batch, axes, scene), *arrow_marks(scene), *arrow_names(scene)]
        if not scene.measured:
            notice = notice or "not measured batch by batch"
        elif sound and not ends.any() and not scene.arrows:
            notice = "no arrow: .grad is None or 0"
    else:
        marks, axes, outside, factor = _draw_on_contours(scene, scene.contours, numbers(scene.path).reshape(-1, 2))
        notice = notice or outside
        corner = [" \u00b7 ".join([*corner, *_factor_text(scene, factor)]), *_factor_text(scene, factor)]
    key = batch_key() if scene.contours is None else (*batch_key(), _NEXT_STEP)
    return Drawing("gradient in .grad", marks, (axes,), _describe(scene), tuple(corner), key=key, notice=notice)


@draw.register
def draw_landscape(scene: Landscape) -> Drawing:
    """Draw contours of the loss, the path of the weights from a ring to a dot, and arrows of ``.grad``, if any."""
    path, arrows = numbers(scene.path).reshape(-1, 2), scene.arrows
    marks, axes, outside, factor = _draw_on_contours(arrows or Arrows([], (0.0, 0.0)), scene.contours, path, "weights")
    drawing = Drawing("path of the weights", marks, (axes,), _describe_path(path), notice=outside)
    if arrows is None:
        return drawing
    description = f"{drawing.words} {_describe(arrows)}"
    return replace(drawing, words=description, corner=_factor_text(arrows, factor), key=(*batch_key(), _NEXT_STEP))


def _draw_on_contours(
    scene: Arrows, contours: Contours, path: Numbers, drag: str = ""
) -> tuple[list[Mark], Axes, str, float]:
    """Return a landscape's marks, the axes and notice of ``surface_axes``, and the factor that magnifies arrows."""
    reach = scene.reach or max(needed_reach(arrow_ends(scene).tolist(), flat=False))
    factor = _fit_factor(surface_of(contours), reach)
    start = np.clip(np.nan_to_num(path[-1] if len(path) else np.zeros(2)), -LARGEST_DRAWN, LARGEST_DRAWN)
    axes, outside = surface_axes(contours, start.tolist())
    way, front = path_marks(path, drag)
    ground = [*surface_marks(contours), *way, *_yardstick(scene.one_batch * factor, axes, scene)]
    front = [*(mark for mark in ground if mark.id in _IN_FRONT), *front]
    marks = [mark for mark in ground if mark.id not in _IN_FRONT]
    marks += arrow_marks(scene, start, factor)
    if scene.move is not None and np.isfinite(scene.move).all():
        end = np.clip(start + numbers(scene.move), -LARGEST_DRAWN, LARGEST_DRAWN)
        label = "where the next step goes: minus lr times .grad"
        marks.append(Arrow("move", np.concatenate([start, end]), "weights", "paper", 0.6, words=label))
    return [*marks, *front, *arrow_names(scene)], axes, outside, factor


def _factor_text(scene: Arrows, factor: float) -> tuple[str, ...]:
    if not scene.reach and not scene.arrows:
        return ()
    return ("arrows true length" if factor == 1 else f"arrows \u00d7 {short(factor)}",)


def _describe_path(path: Numbers) -> str:
    if not len(path):
        return "The weights have not moved yet."
    (x0, y0), (x1, y1) = path[0].tolist(), path[-1].tolist()
    if len(path) == 1:
        return f"The weights are at {short(x1)}, {short(y1)}."
    return f"The weights went from {short(x0)}, {short(y0)} to {short(x1)}, {short(y1)}, on contours of the loss."


def arrow_ends(scene: Arrows) -> Numbers:
    """Return rows: (0, 0), the ends of the arrows laid head to tail from it, and the sum; inf and NaN count as 0."""
    rows = numbers([(0.0, 0.0), *((arrow.x, arrow.y) for arrow in scene.arrows), scene.total])
    rows = np.nan_to_num(rows, posinf=0, neginf=0)
    with np.errstate(over="ignore"):
        rows[:-1] = np.clip(np.cumsum(rows[:-1], axis=0), -LARGEST_DRAWN, LARGEST_DRAWN)
    return rows


def arrow_marks(scene: Arrows, start: Any = (0.0, 0.0), factor: float = 1.0) -> list[Mark]:
    """Return arrows from ``start`` for the sum and, in front of it, the contributions, all magnified by ``factor``."""
    *joints, tip = np.clip(np.asarray(start) + arrow_ends(scene) * factor, -LARGEST_DRAWN, LARGEST_DRAWN)
    label = f"what .grad holds: |grad| {short(math.hypot(*scene.total))}"
    ends = np.concatenate([joints[0], tip])
    marks: list[Mark] = [Arrow("sum", ends, width=_SUM_WIDTH, words=label, moves=True, **BATCH_STYLES["sum"])]
    for number, arrow in enumerate(scene.arrows):
        first, last = arrow.batches or (0, 1)
        style = dict(BATCH_STYLES["other" if arrow.batches is None else batch_style(arrow.applied[0])])
        style |= {"press": f"batch {first}" if first == last and not arrow.names else "", "moves": True}
        ends = np.concatenate(joints[number : number + 2])
        marks.append(Arrow(f"arrow {number}", ends, words=arrow_label(arrow), **style))
    return marks


def batch_style(applied: int) -> str:
    """Return the name of the style in ``BATCH_STYLES`` for a batch that ``applied`` optimizer steps have applied."""
    return _APPLIED[min(applied, 2)]


def plane_axes(reach: float, elements: int = 0) -> Axes:
    """Return axes with equal units for arrows laid flat from (0, 0); all limits are proportional to ``reach``."""
    reach = max(reach, 1e-12) if reach else 1.0
    title = f"{elements:,} numbers drawn flat, nearly to scale" if elements else ""
    across = Axis(-BESIDE * reach, BESIDE * reach, ticks="none")
    return Axes(Axis(-BEFORE * reach, reach, words=title), across, equal="fill")


def _yardstick(length: float, axes: Axes, scene: Arrows) -> list[Mark]:
    """Return a thin arrow and its label, or [] if the scene has no arrows or ``length`` is too short or infinite."""
    (left, right), (low, high) = ((axis.low, axis.high) for axis in (axes.x, axes.y))
    x = 0.0 if axes.equal == "fill" else left + 0.04 * (right - left)
    y = low + 0.06 * (high - low)
    if not scene.arrows or not _SHORTEST_YARDSTICK * (right - left) < length < math.inf:
        return []
    label = "a usual length of one batch: the median of those that came last, while none was applied again"
    arrow = Arrow("one batch", (x, y, x + length, y), "", "grey", 0.7, words=label)
    return [arrow, Text("one batch name", ("one batch",), x + length, y, where="right", role="grey-text", size=11.0)]


def _fit_factor(surface: Surface, reach: float) -> float:
    """Return a round factor that makes arrows of ``reach`` fit ``surface``, or 1 if their true length fits well."""
    if not 0 < reach < math.inf:
        return 1.0
    best = min(_MAX_SHARE * float(np.min(np.diff([surface.x, surface.y]))) / reach, LARGEST_DRAWN)
    if _TRUE_FROM <= best < 2.5:
        return 1.0
    power = 10.0 ** math.floor(math.log10(best))
    return next((power * step for step in _ROUND_FACTORS if power * step <= best), power)


def arrow_label(arrow: BatchArrow) -> str:
    """Return the label of an arrow, such as ``batch 38: length 4.78, 16% of the sum, applied once``."""
    batches = "not from a backward" if arrow.batches is None else batches_text([arrow.batches], EN_DASH)
    name = arrow.names[0] if arrow.names else batches
    length = f"length {short(arrow.length)}, " if math.isfinite(arrow.length) else ""
    return f"{name}: {length}{share_of_sum(arrow.share)}, {applied_text(*arrow.applied)}"


def applied_text(fewest: int, most: int = 0) -> str:
    """Return a phrase for the number of applications, such as ``applied once`` or ``applied 33 to 61 times``."""
    if max(fewest, most) < 2:
        return ("not applied yet", "applied once")[fewest]
    return f"applied {fewest:,} to {most:,} times" if fewest < most else f"applied {fewest:,} times"


def arrow_names(scene: Arrows) -> list[Mark]:
    """Return labels of arrows, such as "batch 260" or "23 batches \u00d7 5-27", or [] if there are too many arrows."""
    if len(scene.arrows) > _MAX_LABELLED:
        return []
    crowded = sum(arrow.applied[0] < 2 for arrow in scene.arrows) > _MAX_FULLY_LABELLED
    names: list[Mark] = []
    spans = [arrow.batches or (0, 0) for arrow in scene.arrows]
    newest = len(spans) - 1
    # The newest arrow is labelled first, then arrows of several batches, because only a label shows how many they are.
    for number in sorted(range(len(spans)), key=lambda i: (i < newest, spans[i][0] == spans[i][1], -i)):
        arrow, (first, last) = scene.arrows[number], spans[number]
        name = f"{last - first + 1:,} batches" if first < last else f"{first:,}" if first else "other"
        counted = f"\u00d7 {spans_text([arrow.applied], EN_DASH)}" if arrow.applied[0] > 1 else ""
        times = counted and f" {counted}"
        forms = [*arrow.names][-1 if crowded else 0 :]
        whole = [f"batch {name}{times}"] * (number == newest and 0 < first == last)
        texts = [form + times for form in forms] or [*whole, name + times, counted or name]
        texts = texts[-1:] if counted and first < last and len(spans) > 4 else texts
        names.append(Text(f"arrow name {number}", tuple(texts), of=f"arrow {number}", where="beside", backed=True))
    return names


def _describe(scene: Arrows) -> str:
    if not scene.holds:
        return ".grad holds no batch."
    norm = f"|grad| {short(math.hypot(*scene.total))} holds {batches_text(scene.holds, EN_DASH)}"
    if not scene.measured:
        return f"{norm}. What each of them contributed was not measured."
    parts = [arrow_label(arrow) for arrow in reversed(scene.arrows[-_MOST_DESCRIBED:])]
    if earlier := scene.arrows[:-_MOST_DESCRIBED]:
        parts.append(f"all before: {share_text(sum(arrow.share for arrow in earlier))}")
    return f"{norm}. {'; '.join(parts)}." if parts else f"{norm}."

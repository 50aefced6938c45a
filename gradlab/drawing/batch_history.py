"""What was inside ``.grad`` at each step of an optimizer: fresh, stale and lost batches over a training."""

from __future__ import annotations

import numpy as np

from ..formatting import short
from ..scenes import BatchHistory
from .axes import Axes, Side, make_axes
from .batches import BATCH_STYLES, add_key
from .builder import PanelBuilder, make_box
from .labels import Spot
from .lettering import text_width
from .limits import Numbers, numbers
from .marks import Band, Drawing, Path

_LEFT, _BELOW, _TOP = 46.0, 38.0, 54.0
_BOX = 9.0  # CSS pixels; narrower columns are drawn as one area
_LOST = "cleared, never applied"


def draw_batch_history(scene: BatchHistory, width: int = 720, height: int = 230) -> Drawing:
    """Draw the batches inside ``.grad`` at each step, stacked: fresh, stale (applied before), and those lost before."""
    panel = PanelBuilder(f"batches in .grad at each step of {scene.name}", width, height)
    fresh, stale, lost = numbers(scene.fresh), numbers(scene.stale), numbers(scene.lost)
    most = float((fresh + stale + lost).max()) if len(fresh) else 0.0
    across = Side(0.5, scene.steps + 0.5 if scene.steps else 1.5, words="step", ticks="updates")
    up = Side(0.0, max(1.25 * most, 1.0), ticks="updates")
    axes = make_axes((width, height), _LEFT, _TOP, width - 16.0, height - _BELOW, across, up)
    panel.axes(axes)
    if stale.any():
        panel.corner(f"at the end: {short(scene.fresh[-1])} fresh, {short(scene.stale[-1])} stale")
    _add_keys(panel, axes, stale=bool(stale.any()), lost=bool(lost.any()))
    edges = np.minimum(np.arange(len(fresh) + 1) * scene.width, scene.steps) + 0.5
    floor = np.zeros(len(fresh))
    for look, counts in (("fresh", fresh), ("stale", stale), ("other", lost)):
        _add_layer(panel, axes, look, edges, floor, floor + counts)
        floor = floor + counts
    return panel.finish(_words(scene))


def _add_keys(panel: PanelBuilder, axes: Axes, *, stale: bool, lost: bool) -> None:
    y = 38.0
    add_key(panel, ["fresh", "stale"] if stale else ["fresh"], axes.left, y, axes.right)
    if lost:
        x = axes.right - text_width(_LOST, 12.0) - 24.0
        if panel.label("key lost word", [Spot(_LOST, x + 23.0, y)]):
            panel.add(make_box("key lost", x, y - 6, x + 18, y + 6, **BATCH_STYLES["other"]))


def _add_layer(panel: PanelBuilder, axes: Axes, look: str, edges: Numbers, low: Numbers, high: Numbers) -> None:
    """Draw one kind of batches: a box a column, or one area where columns are narrow."""
    kept = high > low
    if not kept.any():
        return
    style = BATCH_STYLES[look]
    x, bottom, top = axes.x.place(edges), axes.y.place(low), axes.y.place(high)
    if (axes.right - axes.left) / len(low) >= _BOX:
        for at in np.flatnonzero(kept).tolist():
            box = float(x[at]) + 1.0, float(top[at]), float(x[at + 1]) - 1.0, float(bottom[at])
            panel.add(make_box(f"{look} {at}", *box, **style))
        return
    starts = np.flatnonzero(kept & ~np.r_[False, kept[:-1]])
    ends = np.flatnonzero(kept & ~np.r_[kept[1:], False]) + 1
    for number, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        across = np.repeat(x[start : end + 1], 2)[1:-1]
        lower, upper = np.repeat(bottom[start:end], 2), np.repeat(top[start:end], 2)
        points = np.column_stack([across, lower, upper]).ravel()
        panel.add(Band(f"{look} {number}", points, fill=style["fill"], hatch=style.get("hatch", "")))
        outline = [(across[0], lower[0]), *zip(across, upper, strict=True), (across[-1], lower[-1])]
        dash = style.get("dash", "")
        panel.add(Path(f"{look} edge {number}", np.ravel(outline), stroke=style["stroke"], width=1.0, dash=dash))


def _words(scene: BatchHistory) -> str:
    if not scene.steps:
        return f"{scene.name} took no step."
    said = [f"each step applied {_range(scene.fresh, 'fresh ')}"]
    if any(scene.stale):
        last = short(scene.stale[-1])
        said[0] += f" and {_range(scene.stale)} that an earlier step had applied, {last} at the end"
    else:
        said[0] += " and none that an earlier step had applied"
    if any(scene.lost):
        widths = [scene.width] * (len(scene.lost) - 1) + [scene.steps - scene.width * (len(scene.lost) - 1)]
        total = round(sum(mean * width for mean, width in zip(scene.lost, widths, strict=True)))
        said.append(f"{_count(total)} {'was' if total == 1 else 'were'} cleared and never applied")
    return f"{scene.name}, {scene.steps:,} step{'' if scene.steps == 1 else 's'}: {'; '.join(said)}."


def _range(means: tuple[float, ...], kind: str = "") -> str:
    low, high = min(means), max(means)
    return _count(high, kind) if low == high else f"{short(low)} to {_count(high, kind)}"


def _count(number: float, kind: str = "") -> str:
    return f"{short(number)} {kind}batch{'' if number == 1 else 'es'}"

"""The loss over updates, of one run with a mark at each switch and of several side by side; and the loss scale."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import lru_cache
from itertools import cycle

import numpy as np
import numpy.typing as npt

from ..formatting import number_of, short
from ..scenes import Curve, ScalerHistory, UnswitchedCurve
from .axes import LOG_FROM, Axes, Numbers, Side, from_zero, make_axes, numbers, panel_axes, value_limits
from .builder import PanelBuilder, make_box
from .labels import Spot, shorten, spread_labels, text_width
from .marks import Axis, Band, Dots, Drag, Drawing, Path, Readout

NEWEST = 6
"""So many switches are labelled; older ones keep their dashed line."""
_ROWS, _ROW = 4, 17.0  # of labels of switches, and CSS pixels from one to the next
_MOST_LINES = 40
_CELL = 24.0, 8.0  # CSS pixels by which the name of that curve moves across and up
_BROKEN = 13.0  # size of the words about a loss that is lost

Cells = tuple[tuple[float, float, float], ...]


def draw_loss(scene: Curve, width: int, height: int, zoom: tuple[float, float] | None = None) -> Drawing:
    """Draw the curve up to where it breaks; ``zoom`` shows the updates between two numbers only."""
    panel = PanelBuilder(scene.title, width, height)
    x, mean, low, high = (numbers(part) for part in (scene.updates, scene.mean, scene.low, scene.high))
    kept = _shown(x, mean, scene.broken, zoom)
    x, mean, low, high = x[kept], mean[kept], low[kept], high[kept]
    low, high = (edge if np.isfinite(edge).all() else np.where(np.isfinite(edge), edge, mean) for edge in (low, high))
    shows_newest = scene.broken is None and (zoom is None or bool(len(x) and x[-1] == scene.updates[-1]))
    now = scene.now if shows_newest else math.nan
    other_x, other = _points(scene.unswitched, zoom=zoom) if scene.unswitched else (np.zeros(0), np.zeros(0))
    values = np.concatenate([mean, low, high, other, [now] if math.isfinite(now) else []])
    axes = _axes(scene, [*x[-1:].tolist(), *other_x[-1:].tolist()], values, width, height, zoom)
    panel.axes(axes)
    columns = by_column(axes.x.place(x), mean, low, high)
    _add_curve(panel, axes, columns, now)
    others = by_column(axes.x.place(other_x), other, other, other)
    line = np.column_stack([others[:, 0], axes.y.place(others[:, 1])])
    if scene.unswitched is not None and len(line):
        readout = Readout("about update {x}: {y} without the switch", axes.x.axis, axes.y.axis)
        panel.add(Path("without", line.ravel(), "grey-text", 1.6, "dashed", readout=readout))
    shown = [(at, words) for at, words in scene.switches[-_MOST_LINES:] if axes.x.low <= at <= axes.x.high]
    _add_switches(panel, axes, shown)
    if scene.broken is not None:
        _add_broken(panel, axes, f"inf or NaN from update {scene.broken:,}")
    elif math.isfinite(now):
        panel.corner(f"now {short(now)}")
    if scene.unswitched is not None and len(line):
        _name_unswitched(panel, axes, scene.unswitched, line, columns)
    drag = Drag("zoom", axes.x.axis, axes.y.axis)
    panel.add(make_box("zoom", axes.left, axes.top, axes.right, axes.bottom, drag=drag))
    return panel.finish(_words(scene, x, low, high))


def by_column(x: Numbers, mean: Numbers, low: Numbers, high: Numbers) -> Numbers:
    """Put all points that lie in one column of pixels together: a row (x, mean, lowest, highest) for each column.

    What is said of a column depends on its own points only, so columns before the newest stay as they are.
    """
    if not len(x):
        return np.zeros((0, 4))
    column = np.floor(x)
    begins = np.concatenate([[0], np.flatnonzero(column[1:] != column[:-1]) + 1])
    if len(begins) == len(x):
        return np.column_stack([x, mean, low, high])
    count = np.diff(np.append(begins, len(x)))
    across = np.add.reduceat(x, begins) / count
    middle = np.add.reduceat(mean / np.repeat(count, count), begins)  # divided first: two of 1e308 are no inf
    return np.column_stack([across, middle, np.minimum.reduceat(low, begins), np.maximum.reduceat(high, begins)])


def _axes(
    scene: Curve, newest: list[float], values: Numbers, width: int, height: int, zoom: tuple[float, float] | None
) -> Axes:
    log_from = math.inf if scene.linear else LOG_FROM
    low, high, log = value_limits(values, 1.3 if scene.switches else 1.0, log_from=log_from, close=zoom is not None)
    if zoom is not None and zoom[1] > zoom[0]:
        across = zoom
    else:
        ends = [*newest, *(float(at) for at, _ in scene.switches[-1:]), float(scene.broken or 0)]
        across = (0.0, from_zero(max(ends, default=0.0)))
    updates = Side(float(across[0]), float(across[1]), words="updates", ticks="updates")
    return panel_axes(width, height, updates, Side(low, high, log))


def _add_curve(panel: PanelBuilder, axes: Axes, columns: Numbers, now: float) -> None:
    x, mean, low, high = columns.T
    panel.add(Band("spread", np.column_stack([x, axes.y.place(low), axes.y.place(high)]).ravel(), fill="grey/33"))
    readout = Readout("about update {x}: loss {y}", axes.x.axis, axes.y.axis)
    panel.add(Path("loss", np.column_stack([x, axes.y.place(mean)]).ravel(), stroke="loss", width=1.8, readout=readout))
    if len(columns) and math.isfinite(now):
        place = (float(columns[-1, 0]), axes.y.at(now))
        panel.add(Dots("now", place, size=7.0, fill="loss", words=f"the newest loss: {short(now)}"))


def _add_switches(panel: PanelBuilder, axes: Axes, switches: list[tuple[int, str]]) -> None:
    for number, (at, words) in enumerate(switches):
        x = axes.x.at(at)
        line = (x, axes.bottom, x, axes.top)
        said = f"update {at:,}: {words}"
        panel.add(Path(f"switch {number}", line, stroke="grey", width=1.2, dash="dashed", words=said))
    for number in range(len(switches) - 1, max(-1, len(switches) - 1 - NEWEST), -1):  # the newest one first
        at, words = switches[number]
        x = axes.x.at(at)
        rows = [axes.top + (row + 0.5) * _ROW for row in range(_ROWS)]
        wide = text_width(words)
        right = [Spot(words, x + 5, y) for y in rows] if x + 5 + wide <= axes.right + 8 else []
        left = [Spot(words, x - 5, y, "end") for y in rows] if x - 5 - wide >= axes.left else []
        panel.label(f"switch name {number}", [*right, *left], backed=True)


def _shown(x: Numbers, mean: Numbers, until: int | None, zoom: tuple[float, float] | None) -> npt.NDArray[np.bool_]:
    kept = np.isfinite(x) & np.isfinite(mean)
    first, last = zoom or (-math.inf, math.inf)
    return kept & (x >= first) & (x <= (last if until is None else min(last, until)))


def _points(
    curve: Curve | UnswitchedCurve, until: int | None = None, zoom: tuple[float, float] | None = None
) -> tuple[Numbers, Numbers]:
    """Return the updates and mean losses of a curve, as far as they are shown."""
    x, mean = numbers(curve.updates), numbers(curve.mean)
    kept = _shown(x, mean, until, zoom)
    return x[kept], mean[kept]


def _name_unswitched(panel: PanelBuilder, axes: Axes, scene: UnswitchedCurve, line: Numbers, columns: Numbers) -> None:
    """Write what the curve without the switch is: beside it, or else in a row above, and nowhere on the loss."""
    until = f", until update {scene.updates[-1]:,.0f}" if scene.ended else ""
    texts = f"without the switch ({scene.switched}){until}", f"without the switch{until}", f"{scene.switched}{until}"
    after = np.append(columns[1:, 1], columns[-1:, 1])  # the loss goes on to the next column
    top, bottom = np.maximum(columns[:, 3], after), np.minimum(columns[:, 2], after)
    loss = _cells(columns[:, 0], axes.y.place(top), axes.y.place(bottom))
    said = f"The run goes on without the switch ({scene.switched}) in a copy{'; ' if scene.ended else ''}{scene.ended}."
    spots = _spots_beside(axes, texts, _cells(line[:, 0], line[:, 1], line[:, 1]), loss)
    panel.label("without name", spots, role="grey-text", backed=True, words=said)


def _cells(x: Numbers, top: Numbers, bottom: Numbers) -> Cells:
    """Return where something lies on a coarse grid, as (column, highest row, lowest row).

    What is named by it rests while the curve grows.
    """
    if not len(x):
        return ()
    column = x // _CELL[0]
    begins = np.concatenate([[0], np.flatnonzero(column[1:] != column[:-1]) + 1])
    rows = np.minimum.reduceat(top, begins) // _CELL[1], np.maximum.reduceat(bottom, begins) // _CELL[1]
    return tuple(zip(column[begins].tolist(), *(row.tolist() for row in rows), strict=True))


@lru_cache(maxsize=64)
def _spots_beside(axes: Axes, texts: tuple[str, ...], line: Cells, loss: Cells) -> list[Spot]:
    """Return where one of these texts could be written beside a line, the best place first, and not on the loss."""
    across, up = _CELL
    spots = []
    for text in texts:
        wide = text_width(text)
        for left in (max(line[-1][0] * across - wide, (line[0][0] + 1) * across), (line[-1][0] + 1) * across):
            here = [cell for cell in line if left - across < cell[0] * across < left + wide + across] or line[-1:]
            over, under = min(top for _, top, _ in here) - 1, max(bottom for _, _, bottom in here) + 2
            spots += [Spot(text, left, row * up) for row in (over, under, over - 1, over - 2)]
    rows = [axes.top + (row + 0.5) * _ROW for row in range(_ROWS)]
    key = [Spot(f"- - {text}", axes.left + 6, y) for text in texts[:-1] for y in rows]

    def is_free(spot: Spot) -> bool:
        right = spot.x + text_width(spot.text)
        behind = [cell for cell in loss if spot.x - across < cell[0] * across < right]
        on_loss = any(top * up < spot.y + up and (bottom + 1) * up > spot.y - up for _, top, bottom in behind)
        return not on_loss and axes.top < spot.y < axes.bottom - up

    return [*filter(is_free, [*spots, *key]), *key]  # where the loss is everywhere, on the loss


def _unswitched_words(title: str, scene: UnswitchedCurve) -> str:
    start = f"Without the switch ({scene.switched}) the {title}"
    if scene.ended:
        return f"{start} was {short(scene.now)} at update {scene.updates[-1]:,.0f}; {scene.ended}."
    return f"{start} would be {short(scene.now)} now."


def _add_broken(panel: PanelBuilder, axes: Axes, said: str) -> None:
    x, y, half = (axes.left + axes.right) / 2, axes.bottom - 22, text_width(said, _BROKEN, True) / 2 + 8
    panel.add(make_box("broken frame", x - half, y - 13, x + half, y + 13, fill="paper", stroke="ink", dash="dashed"))
    panel.label("broken", [Spot(said, x, y, "middle")], size=_BROKEN, bold=True)


def _words(scene: Curve, x: Numbers, low: Numbers, high: Numbers) -> str:
    if scene.broken is not None:
        end = f"The {scene.title} is inf or NaN from update {scene.broken:,}."
    elif math.isfinite(scene.now):
        end = f"The {scene.title} is {short(scene.now)} now."
    else:
        end = ""
    if not len(x):
        return end or "No update has been made yet."
    reach = f"Updates {x[0]:,.0f} to {x[-1]:,.0f}: the loss lies between {short(low.min())} and {short(high.max())}."
    at, words = scene.switches[-1] if scene.switches else (0, "")
    switched = f"Switched at update {at:,}: {words}." if words else ""
    without = _unswitched_words(scene.title, scene.unswitched) if scene.unswitched is not None else ""
    return " ".join(part for part in (end, reach, switched, without) if part)


# A curve is told by its colour, its dashes and the name at its end. The colours keep their meaning: stale for a loop
# that applies gradients again, and none of weights, gradients or memory for those that do not.
FRESH_LINES = tuple(
    zip(("loss", "grey") * 4, ("", "dashed", "dotted", "dashdot", "dashed", "", "dashdot"), strict=False)
)
STALE_LINES = tuple(("stale", dash) for dash in ("dashed", "dotted", "dashdot", ""))
TALLEST = 3.0  # how far a diverging curve is followed, in units of the highest loss of those that do not diverge
_APART = 16.0  # CSS pixels from name to name


def draw_comparison(
    curves: Mapping[str, Curve],
    title: str = "loss",
    width: int = 640,
    height: int = 340,
    *,
    stale: Collection[str] = (),
    events: Mapping[int, str] | None = None,
    counted: str = "updates",
) -> Drawing:
    """Draw the mean losses of several runs; ``stale`` names those that apply gradients again.

    ``events`` marks updates with a dotted line and words; ``counted`` names what else the axis counts. A run that
    diverges leaves the picture at the top. What is written at its end is the loss of the newest update.
    """
    panel = PanelBuilder(title, width, height)
    lines = {name: _points(curve, curve.broken) for name, curve in curves.items()}
    tame = [y for name, (_, y) in lines.items() if curves[name].broken is None and len(y)]
    most = TALLEST * max((float(y.max()) for y in tame), default=np.inf)
    low, high, log = value_limits(np.concatenate([y[y <= most] for _, y in lines.values()] or [np.zeros(0)]))
    last = max((float(x[-1]) for x, _ in lines.values() if len(x)), default=0.0)
    right = width - min(170.0, 0.4 * width)
    across = Side(0.0, last if last > 0 else from_zero(last), words=counted, ticks="updates")
    axes = make_axes((width, height), 54.0, 34.0, right, height - 38.0, across, Side(low, high, log))
    panel.axes(axes)
    ends, words = [], []
    looks = {True: cycle(STALE_LINES), False: cycle(FRESH_LINES)}
    for at, (name, (x, y)) in enumerate(lines.items()):
        role, dash = next(looks[name in stale])
        columns = by_column(axes.x.place(x), y, y, y)
        places = np.column_stack([columns[:, 0], axes.y.place(columns[:, 1])])
        broken = curves[name].broken
        newest = curves[name].now if math.isfinite(curves[name].now) else float(y[-1]) if len(y) else math.nan
        end = f"inf at {broken:,}" if broken is not None else short(newest) if len(y) else ""
        readout = Readout(f"{name}, about update {{x}}: loss {{y}}", axes.x.axis, axes.y.axis)
        panel.add(Path(f"curve {at}", places.ravel(), stroke=role, width=2.0, dash=dash, readout=readout))
        text = f"{name}: {end}" if broken is not None else f"{name} {end}".strip()
        words.append(f"{name} {end}".strip())
        x_end, y_end = places[-1].tolist() if len(places) else (axes.left, axes.bottom)
        ends.append((y_end, x_end, text, role, at))
    _add_names(panel, axes, ends)
    for update, said in (events or {}).items():
        place = axes.x.at(float(update))
        line = (place, axes.top, place, axes.bottom)
        panel.add(Path(f"event {update}", line, stroke="grey", width=1.0, dash="dotted"))
        spots = [Spot(said, place + 6, axes.top + 8), Spot(said, place - 6, axes.top + 8, "end")]
        panel.label(f"event {update} word", spots, role="grey", backed=True)
    return panel.finish(f"{title}: {'; '.join(words)}." if words else f"{title}: nothing was run.")


def _add_names(panel: PanelBuilder, axes: Axes, ends: list[tuple[float, float, str, str, int]]) -> None:
    """Put each name beside the end of its curve, pushed apart where ends are close."""
    beside = sorted((end for end in ends if end[1] >= (axes.left + axes.right) / 2), reverse=True)
    ups = spread_labels({str(at): axes.bottom - y for y, *_, at in beside}, _APART, axes.bottom - axes.top)
    for _, _, text, role, at in beside:
        _add_name(panel, [(axes.right + 10, axes.bottom - ups[str(at)])], text, role, at)
    for y, x, text, role, at in ends:
        if x < (axes.left + axes.right) / 2:  # ends early: named where it ends
            _add_name(panel, [(x + 10, y + down) for down in (0.0, 16.0, -16.0, 32.0)], text, role, at)


def _add_name(panel: PanelBuilder, places: list[tuple[float, float]], text: str, role: str, at: int) -> None:
    role = role if role == "loss" else f"{role}-text"
    for size in (13.0, 11.0):
        fits = [Spot(text, x, y) for x, y in places if x + text_width(text, size, True) <= panel.width - 4]
        if panel.label(f"name {at}", fits, size=size, bold=True, role=role):
            return
    cut = [Spot(shorten(text, panel.width - x - 6, 11.0, bold=True, keep_end=True), x, y) for x, y in places]
    panel.label(f"name {at}", cut, size=11.0, bold=True, role=role)


_LEFT, _BELOW = 56.0, 38.0


def draw_scaler(scene: ScalerHistory, width: int, height: int) -> Drawing:
    """Draw the scale as steps on a log2 axis, crosses where a step was skipped; underflow as a strip below."""
    panel = PanelBuilder("loss scale", width, height)
    x, scale, share = numbers(scene.updates), numbers(scene.scale), numbers(scene.underflow)
    count = min(len(x), len(scale), len(share))
    x, scale, share = x[:count], scale[:count], share[:count]
    kept = np.isfinite(x) & np.isfinite(scale) & (scale > 0)
    at, power = x[kept], np.log2(scale[kept])
    skipped = numbers(scene.skipped)
    newest = max([*x[np.isfinite(x)][-1:].tolist(), *skipped[-1:].tolist()], default=0.0)
    across = from_zero(newest)
    strip = max(30.0, height * 0.15)
    low, high = _powers(power)
    size, right = (width, height), width - 16.0
    top = Side(0.0, across, ticks="ticks only")
    upper = make_axes(size, _LEFT, 30.0, right, height - _BELOW - strip - 26, top, Side(low, high, ticks="powers"))
    below = Side(0.0, across, words="updates", ticks="updates")
    lower = make_axes(
        size, _LEFT, height - _BELOW - strip, right, height - _BELOW, below, Side(0, 1, ticks="shares"), "strip"
    )
    skips = len(scene.skipped)
    if skips:
        panel.corner(f"\u00d7 {number_of(skips, 'step')} skipped", role="wrong")
    panel.axes(upper)
    panel.axes(lower)
    panel.label("strip word", [Spot("would underflow without scaling", _LEFT, lower.top - 11)])
    steps = thin_steps(upper.places(at, power).reshape(-1, 2))
    words = f"the loss scale, {short(float(scale[kept][-1]))} now" if len(at) else ""
    of_2, ten = upper.y.axis, math.log10(2)
    in_tens = Axis(of_2.start * ten, of_2.per_pixel * ten, log=True)
    read = Readout("about update {x}: loss scale {y}", upper.x.axis, in_tens)
    panel.add(Path("scale", steps.ravel(), stroke="scale", width=2.4, words=words, readout=read))
    if skips and len(at):
        under = upper.places(skipped, np.interp(skipped, at, power))
        panel.add(Dots("skipped", under, shape="cross", size=9.0, stroke="wrong", width=2.2, words="skipped steps"))
    known = np.isfinite(x) & np.isfinite(share)
    places = lower.places(x[known], np.clip(share[known], 0, 1))
    readout = Readout("about update {x}: a share of {y} would be 0", lower.x.axis, lower.y.axis)
    panel.add(Path("underflow", places, stroke="gradients", width=2.0, dash="dashed", readout=readout))
    return panel.finish(_scaler_words(scene, scale[kept], share[known]))


def thin_steps(places: Numbers) -> Numbers:
    """Return the corners of steps through places (n x 2): a value holds until the next one."""
    if len(places) < 2:
        return places
    changed = np.flatnonzero(places[1:, 1] != places[:-1, 1]) + 1
    corners = np.empty((2 * len(changed), 2))
    corners[0::2, 0] = corners[1::2, 0] = places[changed, 0]
    corners[0::2, 1], corners[1::2, 1] = places[changed - 1, 1], places[changed, 1]
    return np.vstack([places[:1], corners, places[-1:]])


def _powers(power: Numbers) -> tuple[float, float]:
    """Return limits for powers of 2, on multiples of 4, so that one halving moves nothing."""
    if not len(power):
        return 0.0, 4.0
    low, high = float(power.min()), float(power.max())
    return math.floor((low - 2) / 4) * 4.0, math.floor((high + 1) / 4) * 4.0 + 4.0


def _scaler_words(scene: ScalerHistory, scale: Numbers, share: Numbers) -> str:
    if not len(scale):
        return "There is no loss scale yet."
    skips = len(scene.skipped)
    count = number_of(skips, "step") if skips else "no step"
    skipped = f"{count} {'were' if skips > 1 else 'was'} skipped"
    under = f", and {share[-1]:.1%} of the gradient would be 0 without it" if len(share) else ""
    return f"The loss scale is {scale[-1]:,.6g}; {skipped}{under}."

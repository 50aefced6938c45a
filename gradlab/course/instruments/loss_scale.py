"""The loss scale: move it, and see which gradients a 16-bit backward pass loses; watch GradScaler find one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...drawing import (
    SUPERSCRIPTS,
    Axes,
    Band,
    Dots,
    Drawing,
    PanelBuilder,
    Path,
    Side,
    Spot,
    make_axes,
    make_box,
    text_width,
)
from ...formatting import number_of
from ...widgets import Control, Instrument, Settings, View
from .loss_scale_numbers import (
    DTYPES,
    FIRST,
    INIT_SCALE,
    LAST,
    NUMBER_KINDS,
    SCALER_UPDATES,
    WEIGHT,
    Outcome,
    limits_of,
    measure_outcome,
    run_scaler,
)

_SCALES = [2**power for power in range(41)]  # at the last ones gradients overflow
_GROWTH_INTERVALS = [2, 5, 10, 2000]
_SUBJECT = "digits, loss x 0.00001"
ZONES = {
    "zero": ("become 0", "0"),
    "subnormal": ("fewer digits", "fewer"),
    "normal": ("keep all digits", "all digits", "all"),
    "overflow": ("inf or NaN", "inf"),
}
"""Kind -> its words, from long to short."""
_LOOKS = {
    "zero": ("wrong/60", "wrong", "//"),
    "subnormal": ("gradients/35", "gradients", ".."),
    "normal": ("gradients", "ink", ""),
    "overflow": ("wrong/60", "wrong", "\\\\"),
}
"""Kind -> fill, edge and hatch."""
_ZONE_FILLS = {"zero": "grey/30", "subnormal": "grey/12", "overflow": "grey/30"}
_LEFT, _TOP, _RIGHT, _BELOW = 58.0, 62.0, 14.0, 38.0  # CSS pixels around the axes
_ROOM_FOR_UNSCALED = 10
"""From this power of two on, the histogram at a loss scale of 1 stands clear of the scaled one."""
_ROOM_FOR_INTERVAL = 380
"""From this width on, the title has room for growth_interval beside the scale in the corner."""


class LossScale(Instrument):
    """Real gradients over the limits of fp16 or bf16 at a loss scale, beside a run of GradScaler."""

    title = "The loss scale"

    def controls(self) -> list[Control]:
        """Return the controls."""
        return [
            Control.choice("dtype", "autocast", "fp16", list(DTYPES)),
            Control.slider("scale", "loss scale", 1, _SCALES, text=scale_text),
            Control.choice("growth_interval", "growth_interval", 2, [(f"{n:,}", n) for n in _GROWTH_INTERVALS]),
            Control.slider("update", "update", SCALER_UPDATES, list(range(SCALER_UPDATES + 1)), plays=True),
        ]

    def render(self, at: Settings) -> View:
        """Return both panels for these settings."""
        dtype, update, interval = at["dtype"], at["update"], at["growth_interval"]
        outcome = measure_outcome(dtype, at["scale"])
        scales, every = run_scaler(dtype, interval)
        skipped = [each for each in every if each <= update]
        return View(
            panels={
                "gradients": lambda width, height: draw_gradients(outcome, width, height),
                "scaler": lambda width, height: draw_scaler_run(scales, skipped, update, interval, width, height),
            },
            state=f"{_outcome_text(outcome)} {_scaler_text(scales[update], skipped, update)}",
            code=_code_text(dtype, at["scale"], interval),
        )

    def recorded(self) -> Iterable[Settings]:
        """Record every scale for each type, and every update for each growth interval."""
        for dtype in DTYPES:
            yield from ({"dtype": dtype, "scale": scale} for scale in _SCALES)
        for interval in _GROWTH_INTERVALS:
            yield from ({"growth_interval": interval, "update": update} for update in range(SCALER_UPDATES + 1))


def loss_scale(**start: Any) -> LossScale:
    """Return the loss scale instrument; start values by name: dtype, scale, growth_interval, update."""
    return LossScale(**start)


def _outcome_text(outcome: Outcome) -> str:
    """Say how many gradients are lost, and how far off the whole gradient is."""
    zero, fewer, overflow = (
        f"{count:,} ({part_text(count, outcome.total)})" if (count := outcome.count(kind)) else "none"
        for kind in ("zero", "subnormal", "overflow")
    )
    text = (
        f"{outcome.format}, loss scale {scale_text(outcome.scale)}: of {outcome.total:,} gradients, {zero} become 0, "
        f"{fewer} have fewer digits, and {overflow} become inf or NaN."
    )
    if math.isfinite(outcome.error):
        off = f"{outcome.error:.2%}" if outcome.error < 0.1 else f"{outcome.error:.0%}"
        text += f" Divided by the scale, they differ from the fp32 gradient by {off} of its length."
    return text


def _scaler_text(scale: float, skipped: list[int], update: int) -> str:
    """Say where the scaler stands after an update, and which steps it has skipped."""
    which = f" ({', '.join(map(str, skipped))})" if skipped else ""
    return (
        f"GradScaler, after update {update}: loss scale {scale_text(scale)}; "
        f"{len(skipped)} of {update} steps skipped{which}."
    )


def _code_text(format: str, scale: float, growth_interval: int) -> str:
    """Return the plain PyTorch that was run for both panels; it uses model, loss_fn, batches and device."""
    dtype = DTYPES[format]
    return f"""\
# gradients x loss scale: one backward pass
x, y = batches[0]
with torch.autocast(device, {dtype}):
    loss = loss_fn(model(x), y) * {WEIGHT:g}
(loss * {scale}).backward()

# GradScaler: a loop
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler(device, init_scale={INIT_SCALE:.0f}, growth_interval={growth_interval})
for x, y in batches:
    optimizer.zero_grad()
    with torch.autocast(device, {dtype}):
        loss = loss_fn(model(x), y) * {WEIGHT:g}
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


def scale_text(scale: float) -> str:
    """Write a scale in full up to a million, and a larger power of two as a power."""
    mantissa, power = math.frexp(scale)
    large = mantissa == 0.5 and not 1 <= scale < 1e6
    return f"2{str(power - 1).translate(SUPERSCRIPTS)}" if large else f"{scale:,g}"


def part_text(count: int, total: int) -> str:
    """Write a share in percent; what is neither none nor all is never written as 0% or 100%."""
    share = count / total
    if count in (0, total):
        return f"{share:.0%}"
    return f"{share:.2%}" if min(share, 1 - share) < 0.001 else f"{share:.1%}"


def draw_gradients(outcome: Outcome, width: int, height: int) -> Drawing:
    """Draw the gradients by size, coloured by what became of them, over what the type can hold."""
    panel = PanelBuilder(_SUBJECT, width, height)
    scale = scale_text(outcome.scale)
    panel.corner(f"{outcome.format}, loss scale {scale}", f"loss scale {scale}", scale, role="scale-text")
    shares = {kind: outcome.counts[kind] / outcome.total * 100 for kind in NUMBER_KINDS}
    tallest = float(np.sum(list(shares.values()), axis=0).max())
    across = Side(FIRST, LAST, words="size of gradient \u00d7 loss scale (log2 axis)", ticks="powers")
    up = Side(0.0, math.ceil(tallest / 5 + 0.2) * 5.0, words="gradients (%)")
    axes = make_axes((width, height), _LEFT, _TOP, width - _RIGHT, height - _BELOW, across, up)
    _add_zones(panel, axes, outcome)
    panel.axes(axes)
    _add_unscaled(panel, axes, outcome)
    below = np.zeros(LAST - FIRST)
    for kind, share in shares.items():
        if share.any():
            fill, edge, hatch = _LOOKS[kind]
            words = f"{outcome.count(kind):,} gradients: {ZONES[kind][0]}"
            points = _stairs(axes, FIRST, below, share)
            panel.add(Band(f"gradients {kind}", points, fill=fill, stroke=edge, hatch=hatch, words=words))
        below = below + share
    counts = ", ".join(f"{ZONES[kind][0]}: {outcome.count(kind):,}" for kind in NUMBER_KINDS)
    what = f"{outcome.total:,} gradients of {_SUBJECT}, times {scale}, in {outcome.format}"
    return panel.finish(f"{what}. {counts}.")


def _add_zones(panel: PanelBuilder, axes: Axes, outcome: Outcome) -> None:
    """Shade what the type loses; write above each zone how many gradients of all it has."""
    edges = (FIRST, *limits_of(outcome.format), LAST)
    for kind, low, high in zip(NUMBER_KINDS, edges, edges[1:], strict=False):
        start, end = (min(max(float(edge), FIRST), LAST) for edge in (low, high))
        x0, x1 = axes.x.at(start), axes.x.at(end)
        count = outcome.count(kind)
        if end <= start:  # the type reaches beyond the axis
            continue
        if kind != "normal":
            panel.add(make_box(f"zone {kind}", x0, axes.top, x1, axes.bottom, fill=_ZONE_FILLS[kind]))
        role = "wrong" if count and kind in ("zero", "overflow") else "ink"
        share = part_text(count, outcome.total)
        for id, y, texts in (
            (f"zone word {kind}", axes.top - 24, ZONES[kind]),
            (f"zone share {kind}", axes.top - 9, (f"{count:,} = {share}", share)),
        ):
            bold = "share" in id
            fitting = [text for text in texts if text_width(text, bold=bold) <= x1 - x0 - 10] or texts[-1:]
            panel.label(id, [Spot(text, (x0 + x1) / 2, y, "middle") for text in fitting], role=role, bold=bold)


def _stairs(
    axes: Axes, first: int, below: npt.NDArray[np.float64], share: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return a band as triples: a step for each power of two from ``first`` on that has gradients."""
    some = np.flatnonzero(share)
    part = slice(int(some[0]), int(some[-1]) + 1)
    edges = axes.x.place(np.arange(part.start, part.stop + 1, dtype=float) + first)
    low, high = axes.y.place(below[part]), axes.y.place((below + share)[part])
    x = np.column_stack([edges[:-1], edges[1:]]).ravel()
    return np.column_stack([x, np.repeat(low, 2), np.repeat(high, 2)]).ravel()


def _add_unscaled(panel: PanelBuilder, axes: Axes, outcome: Outcome) -> None:
    """Draw the outline that the histogram has at a loss scale of 1: a scale only moves it to the right."""
    moved = round(math.log2(outcome.scale))
    if moved < _ROOM_FOR_UNSCALED:
        return
    share = np.sum(list(outcome.counts.values()), axis=0)[moved:] / outcome.total * 100
    edges = _stairs(axes, FIRST, np.zeros(len(share)), share).reshape(-1, 3)
    ends = [[edges[0, 0], axes.bottom], *edges[:, [0, 2]].tolist(), [edges[-1, 0], axes.bottom]]
    words = "the same gradients at loss scale 1"
    panel.add(Path("unscaled", np.ravel(ends), stroke="ink", width=1.2, dash="dashed", words=words))
    peak = int(np.argmax(share))
    left = int(np.flatnonzero(share > share[peak] / 2)[0])
    above = Spot("loss scale 1", axes.x.at(float(FIRST + peak)), axes.y.at(float(share[peak])) - 7, "middle")
    beside = Spot("loss scale 1", axes.x.at(float(FIRST + left)) - 6, axes.y.at(float(share[peak]) / 2), "end")
    panel.label("unscaled words", [above, beside], size=11.0)


def draw_scaler_run(
    scales: tuple[float, ...], skipped: list[int], update: int, growth_interval: int, width: int, height: int
) -> Drawing:
    """Draw the scale up to an update as steps, and a cross at each step that was skipped."""
    interval = f"growth_interval {growth_interval:,}"
    panel = PanelBuilder("GradScaler" if width < _ROOM_FOR_INTERVAL else f"GradScaler, {interval}", width, height)
    powers = np.log2(np.array(scales))
    low, high = math.floor((powers.min() - 1) / 4) * 4.0, math.floor((powers.max() + 1) / 4) * 4.0 + 4.0
    across = Side(0.0, float(SCALER_UPDATES), words="updates", ticks="updates")
    up = Side(low, high, words="loss scale (log2 axis)", ticks="powers")
    axes = make_axes((width, height), _LEFT, 34.0, width - _RIGHT, height - _BELOW, across, up)
    panel.axes(axes)
    now = scale_text(scales[update])
    panel.corner(f"scale {now}, {number_of(len(skipped), 'step')} skipped", f"{now}, {len(skipped)} skipped")
    # Update n works with scales[n - 1]; it is drawn from n - 1 to n.
    path = axes.places(np.repeat(np.arange(update + 1.0), 2)[1:], np.repeat(powers[: update + 1], 2)[:-1])
    panel.add(Path("scale", path, stroke="scale", width=3.0, words=f"the loss scale, {now} now"))
    if skipped:
        crosses = axes.places(np.array(skipped, dtype=float), powers[np.array(skipped) - 1])
        words = "skipped: a gradient was inf or NaN, so the weights stay and the scale is halved"
        panel.add(Dots("skipped", crosses, shape="cross", size=10.0, stroke="wrong", width=2.4, words=words))
    panel.add(Dots("now", tuple(path[-2:].tolist()), size=8.0, fill="scale", stroke="ink", words=f"now {now}"))
    end = f"{len(skipped)} of {update} steps were skipped"
    return panel.finish(f"After update {update}, with {interval}, the loss scale is {now}; {end}.")

"""The loss scale over updates, the skipped steps, and what would underflow without it."""

from __future__ import annotations

import math

import numpy as np

from ..formatting import number_of, short
from ..scenes import ScalerHistory
from .axes import Numbers, Side, from_zero, make_axes, numbers
from .builder import PanelBuilder
from .labels import Spot
from .marks import Axis, Dots, Drawing, Path, Readout

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
    return panel.finish(_words(scene, scale[kept], share[known]))


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


def _words(scene: ScalerHistory, scale: Numbers, share: Numbers) -> str:
    if not len(scale):
        return "There is no loss scale yet."
    skips = len(scene.skipped)
    count = number_of(skips, "step") if skips else "no step"
    skipped = f"{count} {'were' if skips > 1 else 'was'} skipped"
    under = f", and {share[-1]:.1%} of the gradient would be 0 without it" if len(share) else ""
    return f"The loss scale is {scale[-1]:,.6g}; {skipped}{under}."

"""The loss along the line that the step takes."""

from __future__ import annotations

import math

import numpy as np

from ..formatting import short
from ..scenes import Slice
from .axes import Side, panel_axes
from .builder import PanelBuilder
from .labels import Spot
from .limits import around, numbers, value_limits
from .marks import Dots, Drawing, Path, Readout

_LOG_FROM = 1000.0


def draw_slice(scene: Slice, width: int, height: int) -> Drawing:
    """Draw the loss at ``weights - t * .grad``; marks where the weights are and where plain SGD would land."""
    panel = PanelBuilder("loss along \u2212.grad", width, height)
    t, loss = numbers(scene.t), numbers(scene.loss)
    kept = np.isfinite(t) & np.isfinite(loss)
    t, loss = t[kept], loss[kept]
    order = np.argsort(t, kind="stable")
    t, loss = t[order], loss[order]
    low, high, log = value_limits(loss, 1.2, log_from=_LOG_FROM)
    lr = scene.lr if math.isfinite(scene.lr) else 0.0
    across = (min(float(t[0]), 0.0, lr), max(float(t[-1]), 0.0, lr)) if len(t) else (0.0, 1.0)
    if across[1] - across[0] <= 1e-12 * max(map(abs, across)):
        across = around(*across)
    along = Side(*across, words="t  in  weights \u2212 t \u00b7 .grad")
    axes = panel_axes(width, height, along, Side(low, high, log))
    panel.axes(axes)
    readout = Readout("t about {x}: loss {y}", axes.x.axis, axes.y.axis)
    panel.add(Path("loss", axes.places(t, loss), stroke="loss", width=1.8, readout=readout))
    at_lr = axes.x.at(lr)
    if len(t):
        line = (at_lr, axes.bottom, at_lr, axes.top)
        panel.add(Path("lr", line, stroke="grey", width=1.2, dash="dashed", words=f"lr {short(scene.lr)}"))
    found = []
    for id, at, word, look, words in (
        ("now", 0.0, "now", ("circle", "weights", "paper"), "where the weights are: loss {}"),
        (
            "there",
            lr,
            f"lr {short(scene.lr)}:",
            ("diamond", "gradients", "ink"),
            "where plain SGD lands: loss {}",
        ),
    ):
        if not (len(t) and t[0] <= at <= t[-1]):
            continue
        value = float(np.interp(at, t, loss))
        x, y = axes.x.at(at), axes.y.at(value)
        shape, fill, stroke = look
        said = words.format(short(value))
        panel.add(Dots(id, (x, y), shape=shape, size=10.0, fill=fill, stroke=stroke, words=said))
        found.append((id, f"{word} {short(value)}", x, y))
    for id, said, x, y in found:
        beside = (
            (10, -13, "start"),
            (-10, -13, "end"),
            (10, 14, "start"),
            (-10, 14, "end"),
            (10, -30, "start"),
            (-10, -30, "end"),
        )
        spots = [Spot(said, x + right, y + down, anchor) for right, down, anchor in beside]
        panel.label(f"{id} word", spots, bold=True, backed=True)
    said = "; ".join(f"{said}" for _, said, _, _ in found)
    return panel.finish(
        f"The loss of this batch along minus .grad: {said}." if said else "There is no loss to show yet."
    )

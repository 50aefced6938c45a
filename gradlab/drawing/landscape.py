"""The loss over two weights, and the way that the weights went."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

import numpy as np

from ..formatting import short
from ..scenes import Landscape
from .axes import Axes
from .builder import PanelBuilder
from .labels import Spot
from .limits import Numbers, numbers
from .marks import Dots, Drag, Drawing, Path, Readout
from .surface import add_surface

AGES = ("weights/20", "weights/45", "weights")
"""Roles of the oldest, the middle and the newest third of the path: what is old must not cover the contours."""
_DOTTED = 60  # up to so many points of the path are dots too
_AWAY = 10.0  # CSS pixels from a point to its word


def draw_landscape(scene: Landscape, width: int, height: int) -> Drawing:
    """Draw contours with the path; a ring where it began, a dot where it is."""
    panel = PanelBuilder("path of the weights", width, height)
    path = pairs(scene.path)
    axes = add_surface(panel, scene.contours, path, 14.0, named=True)
    places = axes.places(path[:, 0], path[:, 1]).reshape(-1, 2)
    places = places[np.isfinite(places).all(axis=1)]
    cuts = thirds(len(places))
    for number, role in enumerate(AGES):
        part = thin(places[cuts[number] : cuts[number + 1] + 1])
        panel.add(Path(f"path {number}", part.ravel(), stroke=role, width=1.8, readout=_readout(axes)))
        if len(places) <= _DOTTED:
            panel.add(Dots(f"steps {number}", part.ravel(), size=3.5, fill=role))
    if len(places):
        _add_ends(panel, axes, path, places)
    return panel.finish(_words(path))


def pairs(points: Sequence[tuple[float, float]]) -> Numbers:
    """Return pairs of numbers as an array, n x 2."""
    return numbers(np.fromiter(chain.from_iterable(points), dtype=np.float64, count=2 * len(points))).reshape(-1, 2)


def thirds(count: int) -> tuple[int, int, int, int]:
    """Cut so many points in about three thirds, at places that stay the same for a while as points are added."""
    step = max(1, 2 ** (max(count, 1) // 3).bit_length() // 16)
    return 0, count // 3 // step * step, 2 * count // 3 // step * step, count


def thin(places: Numbers) -> Numbers:
    """Leave out points that lie where the one before them lies, to a quarter of a pixel."""
    if len(places) < 2:
        return places
    quarters = np.rint(places * 4)
    return places[np.concatenate([[True], (quarters[1:] != quarters[:-1]).any(axis=1)])]


@lru_cache(maxsize=16)
def _readout(axes: Axes) -> Readout:
    return Readout("weights about {x}, {y}", axes.x.axis, axes.y.axis)


def _add_ends(panel: PanelBuilder, axes: Axes, path: Numbers, places: Numbers) -> None:
    drag = Drag("weights", axes.x.axis, axes.y.axis)
    if len(path) > 1:
        start = Dots("start", places[0], shape="ring", size=9.0, fill="paper", stroke="weights", width=1.8)
        panel.add(start)
    now = Dots(
        "now",
        places[-1],
        size=11.0,
        fill="weights",
        stroke="paper",
        width=1.5,
        words="drag to another start",
        drag=drag,
        moves=True,
    )
    panel.add(now)
    for word, place in (("now", places[-1]), ("start", places[0]))[: len(path)]:
        x, y = place.tolist()
        spots = [
            Spot(word, x + _AWAY * right, y + _AWAY * down, "start" if right > 0 else "end" if right < 0 else "middle")
            for right, down in ((1, -1), (-1, -1), (1, 1), (-1, 1), (0, -1.6), (0, 1.6), (2, 0), (-2, 0))
        ]
        panel.label(f"{word} word", spots, role="weights-text", bold=True, backed=True)


def _words(path: Numbers) -> str:
    if not len(path):
        return "The weights have not moved yet."
    (x0, y0), (x1, y1) = path[0].tolist(), path[-1].tolist()
    if len(path) == 1:
        return f"The weights are at {short(x1)}, {short(y1)}."
    return f"The weights went from {short(x0)}, {short(y0)} to {short(x1)}, {short(y1)}, on contours of the loss."

"""What a classifier says over the plane, with the data on it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..scenes import Boundary
from .axes import Side, make_axes
from .builder import PanelBuilder
from .landscape import pairs
from .limits import Numbers, around, numbers
from .marks import Dots, Drawing, Image

SHAPES_OF_CLASSES = ("circle", "square", "triangle", "diamond", "down", "plus", "cross", "left", "right", "star")
SHADES = (10, 17, 24, 31, 38, 44, 50)
"""Per cent of the class's colour, from unsure to sure."""
_PALETTE = tuple(f"class{number}/{shade}" for number in range(len(SHAPES_OF_CLASSES)) for shade in SHADES)


def draw_boundary(scene: Boundary, width: int, height: int) -> Drawing:
    """Draw regions in the tint of the class that wins there, stronger where the model is surer, and the points."""
    panel = PanelBuilder("what the model says", width, height)
    label, sure = np.array(scene.label, dtype=int), np.array(scene.confidence, dtype=float)
    points = pairs(scene.points)
    x, y = _extent(numbers(scene.x), points[:, 0]), _extent(numbers(scene.y), points[:, 1])
    size = (width, height)
    axes = make_axes(
        size, 52.0, 30.0, width - 16.0, height - 38.0, Side(*x, words="input 1"), Side(*y, words="input 2")
    )
    if math.isfinite(scene.accuracy):
        panel.corner(f"{scene.accuracy:.0%} right")
    classes = np.array(scene.point_labels, dtype=int)[: len(points)]
    said = _words(scene, np.unique(classes))
    if label.ndim == 2 and label.size and label.shape == sure.shape:
        # from chance to certain in a few tints, so that few cells change from frame to frame
        shade = np.floor(np.clip(np.nan_to_num(sure), 0, 0.999) * len(SHADES)).astype(int)
        cells = (label % len(SHAPES_OF_CLASSES) * len(SHADES) + shade)[::-1]
        wide, tall = axes.right - axes.left, axes.bottom - axes.top
        place = (axes.left, axes.top, wide, tall, label.shape[1])
        panel.add(Image("regions", *place, cells.ravel(), _PALETTE, said, smooth=True))
    panel.axes(axes)
    finite = np.isfinite(points[: len(classes)]).all(axis=1)
    for number, shape in enumerate(SHAPES_OF_CLASSES):
        mine = points[: len(classes)][(classes % len(SHAPES_OF_CLASSES) == number) & finite]
        if len(mine):
            places = axes.places(mine[:, 0], mine[:, 1])
            words = f"points of class {number}"
            look: dict[str, Any] = {"fill": f"class{number}", "stroke": "ink", "width": 0.5}
            panel.add(Dots(f"class {number}", places, shape=shape, size=5.5, words=words, **look))
    return panel.finish(said)


def _extent(edges: Numbers, points: Numbers) -> tuple[float, float]:
    """Return the limits of a grid whose points are the middles of its cells."""
    finite = edges[np.isfinite(edges)]
    if len(finite) > 1 and finite.max() > finite.min():
        half = (finite.max() - finite.min()) / (len(finite) - 1) / 2
        return float(finite.min() - half), float(finite.max() + half)
    both = np.concatenate([finite, points[np.isfinite(points)]])
    return around(float(both.min()), float(both.max())) if len(both) else (0.0, 1.0)


def _words(scene: Boundary, classes: Numbers) -> str:
    right = f", of which {scene.accuracy:.0%} are classified right" if math.isfinite(scene.accuracy) else ""
    return f"{len(scene.points):,} points of {len(classes)} classes{right}, on the regions where each class wins."

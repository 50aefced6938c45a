"""What a classifier says: its regions over the plane with the data, or held-out digits with its answers."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ..scenes import Boundary, Samples
from .axes import Numbers, Side, around, numbers, panel_axes
from .builder import PanelBuilder
from .labels import Spot
from .landscape import pairs
from .marks import Dots, Drawing, Image, Path

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
    axes = panel_axes(width, height, Side(*x, words="input 1"), Side(*y, words="input 2"), left=52.0)
    if math.isfinite(scene.accuracy):
        panel.corner(f"{scene.accuracy:.0%} right")
    classes = np.array(scene.point_labels, dtype=int)[: len(points)]
    said = _boundary_words(scene, np.unique(classes))
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


def _boundary_words(scene: Boundary, classes: Numbers) -> str:
    right = f", of which {scene.accuracy:.0%} are classified right" if math.isfinite(scene.accuracy) else ""
    return f"{len(scene.points):,} points of {len(classes)} classes{right}, on the regions where each class wins."


MOST_IMAGES = 24
_SHADES = 16
_SIDE = 8  # cells of a digit
_TOP, _ANSWER, _GAP = 30.0, 17.0, 8.0  # CSS pixels: above the digits, for an answer, between digits
_TOLD = 5  # mistakes in the words of the panel


def draw_samples(scene: Samples, width: int, height: int) -> Drawing:
    """Draw a grid of digits, the answer under each: ``7`` when right, ``1, is 7`` crossed out when wrong."""
    panel = PanelBuilder("held-out digits", width, height)
    count = min(len(scene.images), len(scene.predicted), len(scene.actual), MOST_IMAGES)
    columns, cell = grid(count, width - 2 * _GAP, height - _TOP - 4)
    wide = (width - 2 * _GAP) / columns
    if math.isfinite(scene.accuracy):
        panel.corner(f"{scene.accuracy:.0%} right")
    wrong = []
    for at in range(count):
        row, column = divmod(at, columns)
        x = _GAP + column * wide + (wide - cell) / 2
        y = _TOP + row * (cell + _ANSWER + 2)
        said, truth = scene.predicted[at], scene.actual[at]
        pixels = np.nan_to_num(np.array(scene.images[at], dtype=float).reshape(_SIDE, _SIDE))
        shades = np.rint(np.clip(pixels, 0, 1) * _SHADES).astype(np.uint8)
        right = said == truth
        words = f"the model says {said}, " + ("which is right" if right else f"it is {truth}")
        place = (round(part * 4) / 4 for part in (x, y, cell))
        panel.add(_digit(f"digit {at}", *place, shades.tobytes(), words))
        if not right:
            wrong.append(f"{said} for {truth}")
            a, b, c, d = x, x + cell, y, y + cell
            cross = [a, c, b, c, b, d, a, d, a, c, b, d, math.nan, math.nan, a, d, b, c]
            panel.add(Path(f"cross {at}", np.array(cross), stroke="wrong", width=2.2, words=words))
        answers = [str(said)] if right else [f"{said}, is {truth}", f"{said}\u2260{truth}", str(said)]
        spots = [Spot(text, x + cell / 2, y + cell + 9, "middle") for text in answers]
        panel.label(f"answer {at}", spots, role="ink" if right else "wrong", bold=not right, size=11.0, words=words)
    return panel.finish(_samples_words(count, wrong, scene.accuracy))


def grid(count: int, wide: float, tall: float) -> tuple[int, float]:
    """Return (columns, side of a digit in pixels) of the grid in which so many digits are largest."""
    count = max(count, 1)

    def side(columns: int) -> float:
        return min(wide / columns - _GAP, tall / math.ceil(count / columns) - _ANSWER - 2)

    columns = max(range(1, count + 1), key=side)
    return columns, max(side(columns), 4.0)


@lru_cache(maxsize=256)
def _digit(id: str, x: float, y: float, side: float, shades: bytes, words: str) -> Image:
    palette = tuple(f"ink/{round(80 * shade / _SHADES)}" for shade in range(_SHADES + 1))
    return Image(id, x, y, side, side, _SIDE, np.frombuffer(shades, dtype=np.uint8), palette, words)


def _samples_words(count: int, wrong: list[str], accuracy: float) -> str:
    right = f"{accuracy:.0%} of the held-out digits are read right." if math.isfinite(accuracy) else ""
    if not count:
        return right or "There are no held-out digits."
    if not wrong:
        return f"{right} All {count} that are shown are right.".strip()
    more = f" and {len(wrong) - _TOLD} more" if len(wrong) > _TOLD else ""
    return f"{right} Of the {count} shown, {len(wrong)} are wrong: {', '.join(wrong[:_TOLD])}{more}.".strip()

"""Which function draws which kind of scene; and what a classifier says of held-out digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import scenes
from .builder import PanelBuilder
from .fit import draw_fit
from .gradient import draw_arrows
from .labels import Spot
from .landscape import draw_landscape, draw_slice
from .loss import draw_loss, draw_scaler
from .marks import Drawing, Image, Path
from .memory import draw_memory

MOST_IMAGES = 24
_SHADES = 16
_PALETTE = tuple(f"ink/{round(80 * shade / _SHADES)}" for shade in range(_SHADES + 1))
_SIDE = 8  # cells of a digit
_TOP, _ANSWER, _GAP = 30.0, 17.0, 8.0  # CSS pixels: above the digits, for an answer, between digits
_TOLD = 5  # mistakes in the words of the panel


def draw_samples(scene: scenes.Samples, width: int, height: int) -> Drawing:
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
        left, top, side = (round(part * 4) / 4 for part in (x, y, cell))
        panel.add(Image(f"digit {at}", left, top, side, side, _SIDE, shades.ravel(), _PALETTE, words))
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


def _samples_words(count: int, wrong: list[str], accuracy: float) -> str:
    right = f"{accuracy:.0%} of the held-out digits are read right." if math.isfinite(accuracy) else ""
    if not count:
        return right or "There are no held-out digits."
    if not wrong:
        return f"{right} All {count} that are shown are right.".strip()
    more = f" and {len(wrong) - _TOLD} more" if len(wrong) > _TOLD else ""
    return f"{right} Of the {count} shown, {len(wrong)} are wrong: {', '.join(wrong[:_TOLD])}{more}.".strip()


SMALLEST = (260, 200)
"""The least width and height, in CSS pixels, that a panel is laid out for; a smaller one is made so large."""
_PANELS: dict[type, Callable[[Any, int, int], Drawing]] = {
    scenes.Arrows: draw_arrows,
    scenes.Landscape: draw_landscape,
    scenes.Slice: draw_slice,
    scenes.ScalerHistory: draw_scaler,
    scenes.Samples: draw_samples,
    scenes.Memory: draw_memory,
    scenes.Fit: draw_fit,
}


def draw(
    scene: scenes.Scene, width: int = 400, height: int = 260, *, zoom: tuple[float, float] | None = None
) -> Drawing:
    """Return the panel of a scene, ``width`` x ``height`` CSS pixels; ``zoom`` is a range of updates of the loss.

    Raises TypeError for what is no scene.
    """
    width, height = max(width, SMALLEST[0]), max(height, SMALLEST[1])
    if isinstance(scene, scenes.Curve):
        return draw_loss(scene, width, height, zoom)
    panel = _PANELS.get(type(scene))
    if panel is None:
        known = ", ".join(kind.__name__ for kind in (scenes.Curve, *_PANELS))
        raise TypeError(f"no panel draws a {type(scene).__name__}; scenes are: {known}")
    return panel(scene, width, height)

"""The panel of held-out digits with a classifier's predictions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..scenes import Samples
from .marks import Axes, Axis, Drawing, Image, Line, Mark, Text, draw

_SHADES, _SIDE = 16, 8  # number of the darkest grey level, counted from 0, and cells along one side of a digit
_PALETTE = tuple(f"ink/{round(80 * shade / _SHADES)}" for shade in range(_SHADES + 1))
_TALL, _GAP = 1.2, 0.12  # height of a row with its answers, and gap between digits, in column widths
_MOST_DESCRIBED = 5  # number of mistakes that the description of the panel lists


@draw.register
def draw_samples(scene: Samples) -> Drawing:
    """Draw digits with the model's answers below: ``7`` if right, ``1, is 7`` and a cross over the digit if wrong."""
    samples = list(zip(scene.images, scene.predicted, scene.actual, strict=False))
    count = len(samples)
    columns = max(round(math.sqrt(3 * count)), 1)  # 12 digits fill two rows, as a panel is wider than it is high
    marks: list[Mark] = []
    wrong = []
    for number, (image, predicted, actual) in enumerate(samples):
        left, top = number % columns + _GAP / 2, -_TALL * (number // columns)
        right, bottom = left + 1 - _GAP, top - 1 + _GAP
        label = f"the model says {predicted}, " + ("which is right" if predicted == actual else f"it is {actual}")
        cells = np.rint(np.clip(np.nan_to_num(np.ravel(image)), 0, 1) * _SHADES).astype(np.uint8)
        marks.append(Image(f"digit {number}", (left, top, right, bottom), _SIDE, cells, _PALETTE, label))
        texts: tuple[str, ...] = (str(predicted),)
        if predicted != actual:
            wrong.append(f"{predicted} for {actual}")
            texts = (f"{predicted}, is {actual}", f"{predicted}\u2260{actual}")
            corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
            cross = [*corners, (right, bottom), (math.nan, math.nan), (left, bottom), (right, top)]
            marks.append(Line(f"cross {number}", np.ravel(cross), "wrong", 2.2, words=label))
        middle, below = (left + right) / 2, (bottom + top - _TALL) / 2
        style: dict[str, Any] = {"role": "ink"} if predicted == actual else {"role": "wrong", "bold": True}
        marks.append(Text(f"answer {number}", texts, middle, below, where="center", size=11.0, words=label, **style))
    rows = math.ceil(count / columns)
    axes = Axes(Axis(0.0, columns, ticks="none"), Axis(-_TALL * max(rows, 1), _GAP / 2, ticks="none"), equal="fit")
    corner = (f"{scene.accuracy:.0%} right",) if math.isfinite(scene.accuracy) else ()
    answered = f"{scene.accuracy:.0%} of the held-out digits are read right. " if corner else ""
    more = f" and {len(wrong) - _MOST_DESCRIBED} more" if len(wrong) > _MOST_DESCRIBED else ""
    shown = f"All {count} that are shown are right."
    if wrong:
        shown = f"Of the {count} shown, {len(wrong)} are wrong: {', '.join(wrong[:_MOST_DESCRIBED])}{more}."
    elif not count:
        shown = "" if answered else "There are no held-out digits."
    return Drawing("held-out digits", marks, (axes,), f"{answered}{shown}".strip(), corner=corner)

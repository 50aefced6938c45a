"""Whether labels of a Drawing are apart, by widths that FreeType gives for whole texts."""

from __future__ import annotations

import itertools
import math
from functools import cache
from pathlib import Path as FilePath

import matplotlib
import numpy as np
from matplotlib.ft2font import FT2Font

from gradlab.drawing import Drawing, Text


@cache
def wide(text: str, size: float, bold: bool) -> float:
    """The width of a text as FreeType lays it out, with kerning."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    font = FT2Font(str(FilePath(matplotlib.get_data_path()) / "fonts" / "ttf" / name))
    font.set_size(100, 72)
    font.set_text(text)
    return float(font.get_width_height()[0]) / 64 * size / 100


def corners(text: Text) -> np.ndarray:
    """The corners of what a text covers: as wide as it is, and as high as capitals with their descenders."""
    long, tall = wide(text.text, text.size, text.bold), 0.95 * text.size
    begin = {"start": 0.0, "middle": -long / 2, "end": -long}[text.anchor]
    box = np.array([[begin, -tall / 2], [begin + long, -tall / 2], [begin + long, tall / 2], [begin, tall / 2]])
    turn = -math.radians(text.angle)  # y goes down
    cos, sin = math.cos(turn), math.sin(turn)
    return box @ np.array([[cos, sin], [-sin, cos]]) + [text.x, text.y]


def overlap(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether one rectangle has a point in the other, by cutting the one with the sides of the other."""
    kept = [tuple(corner) for corner in one]
    for (ax, ay), (bx, by) in zip(other, np.roll(other, -1, axis=0), strict=True):
        inside = [(bx - ax) * (y - ay) - (by - ay) * (x - ax) for x, y in kept]
        cut = []
        for (p, q), (s, t) in zip(
            zip(kept, inside, strict=True), zip(kept[1:] + kept[:1], inside[1:] + inside[:1], strict=True), strict=True
        ):
            if q >= 0:
                cut.append(p)
            if (q >= 0) != (t >= 0):
                share = q / (q - t)
                cut.append((p[0] + share * (s[0] - p[0]), p[1] + share * (s[1] - p[1])))
        kept = cut
        if not kept:
            return False
    across, down = zip(*kept, strict=True)
    return max(across) - min(across) > 0.1 and max(down) - min(down) > 0.1


def check_labels(drawing: Drawing) -> None:
    """Fail where a label of a Drawing overprints another, leaves the panel, or is too small or too large."""
    texts = [mark for mark in drawing.marks if isinstance(mark, Text)]
    boxes = [corners(text) for text in texts]
    for text, box in zip(texts, boxes, strict=True):
        assert box.min() >= -0.5, text
        assert box[:, 0].max() <= drawing.width + 0.5, text
        assert box[:, 1].max() <= drawing.height + 0.5, text
        assert 11 <= text.size <= 14, text
    for (one, a), (other, b) in itertools.combinations(zip(texts, boxes, strict=True), 2):
        apart = a[:, 0].max() < b[:, 0].min() or b[:, 0].max() < a[:, 0].min()
        if not apart:
            assert not overlap(a, b), f"{one} and {other}"

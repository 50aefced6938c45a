"""Words of a panel: how wide they are, and where labels go, so that none overprints another or leaves the panel."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import matplotlib
from matplotlib import ft2font
from matplotlib.ft2font import FT2Font

from .marks import Text

TALL = 1.1
"""The height of a line of text, in units of its size."""
_FINE = 1000  # the size in pixels at which widths are taken
# matplotlib 3.10 gave the flags a class of their own
_LOAD_FLAGS: Any = getattr(ft2font, "LoadFlags", ft2font)
_NO_HINTING = getattr(_LOAD_FLAGS, "NO_HINTING", None) or _LOAD_FLAGS.LOAD_NO_HINTING


@lru_cache(maxsize=16384)
def text_width(text: str, size: float = 12.0, bold: bool = False) -> float:
    """Return the width of a text in CSS pixels, without kerning."""
    return size * sum(_advance(character, bold) for character in text)


@lru_cache(maxsize=2048)
def shorten(text: str, wide: float, size: float = 12.0, *, bold: bool = False, keep_end: bool = False) -> str:
    """Cut a text to a width in CSS pixels, an ellipsis in place of what is cut; "" where nothing fits."""
    if text_width(text, size, bold) <= wide:
        return text
    for left in range(len(text) - 1, 0, -1):
        cut = "\u2026" + text[-left:] if keep_end else text[:left].rstrip() + "\u2026"
        if text_width(cut, size, bold) <= wide:
            return cut
    return ""


def wrapped(text: str, wide: float, size: float = 12.0) -> list[str]:
    """Break a text into lines of at most so many CSS pixels; a word that is wider has a line of its own."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > wide:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


@lru_cache(maxsize=4096)
def _advance(character: str, bold: bool) -> float:
    font = _font(bold)
    if not font.get_char_index(ord(character)):
        return 1.0  # another font writes it, for example Chinese: its signs are as wide as they are high
    return float(font.load_char(ord(character), flags=_NO_HINTING).linearHoriAdvance) / 65536 / _FINE


@lru_cache(maxsize=2)
def _font(bold: bool) -> FT2Font:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    font = FT2Font(os.path.join(matplotlib.get_data_path(), "fonts", "ttf", name))
    font.set_size(_FINE, 72)
    return font


Corners = tuple[tuple[float, float], ...]
_NEAR = 2.0  # CSS pixels kept free beside a label


class Box(NamedTuple):
    """What a label covers, in CSS pixels; a slanted one covers its ``corners`` only."""

    left: float
    top: float
    right: float
    bottom: float
    corners: Corners = ()


class Spot(NamedTuple):
    """What a label could say, and where."""

    text: str
    x: float
    y: float
    anchor: str = "start"


def spots_around(text: str, x: float, y: float, steps: Iterable[tuple[float, float]]) -> list[Spot]:
    """Return spots beside a place, each some CSS pixels to the right and down; what lies to the left ends there."""
    return [
        Spot(text, x + right, y + down, "start" if right > 0 else "end" if right < 0 else "middle")
        for right, down in steps
    ]


class Placer:
    """Gives each label the first of its spots that is free; a label that finds none is left out."""

    def __init__(self, width: float, height: float) -> None:
        """Start with an empty panel of this size."""
        self.width, self.height = width, height
        self.boxes: list[Box] = []
        """What labels cover so far."""

    def take(self, boxes: Iterable[Box]) -> None:
        """Keep labels out of these boxes."""
        self.boxes += boxes

    def place(
        self,
        id: str,
        spots: Iterable[Spot],
        *,
        size: float = 12.0,
        role: str = "ink",
        bold: bool = False,
        backed: bool = False,
        angle: float = 0.0,
        words: str = "",
    ) -> Text | None:
        """Return the label at the first free spot, which is then taken; None where there is none."""
        for spot in spots:
            if not spot.text or not (abs(spot.x) < 1e5 and abs(spot.y) < 1e5):
                continue
            # Whole quarters of a pixel, as on the wire: what hardly moves is the very same mark.
            x, y = round(spot.x * 4) / 4, round(spot.y * 4) / 4
            box = text_box(spot.text, x, y, spot.anchor, size, bold, angle)
            if self._free(box):
                self.boxes.append(box)
                return make_text(id, x, y, spot.text, role, size, spot.anchor, bold, backed, angle, words)
        return None

    def _free(self, box: Box) -> bool:
        left, top, right, bottom, corners = box
        if left < 0 or top < 0 or right > self.width or bottom > self.height:
            return False
        left, right = left - _NEAR, right + _NEAR
        for other in self.boxes:
            if left >= other[2] or other[0] >= right or top >= other[3] or other[1] >= bottom:
                continue
            if not (corners or other[4]) or _touch(_corners(box), _corners(other)):
                return False
        return True


def spread_labels(heights: Mapping[str, float], gap: float, top: float) -> dict[str, float]:
    """Move labels that would lie on each other ``gap`` apart, as little as can be, and none above ``top``."""
    order = sorted(heights, key=lambda name: heights[name])
    placed: list[float] = []
    for name in order:
        placed.append(max(heights[name], placed[-1] + gap if placed else 0.0))
    ceiling = top
    for at in range(len(placed) - 1, -1, -1):
        placed[at] = max(min(placed[at], ceiling), 0.0)
        ceiling = placed[at] - gap
    return dict(zip(order, placed, strict=True))


make_text = lru_cache(maxsize=8192)(Text)
"""A Text with these fields, the very same object for the same fields: what has not changed is not sent."""


@lru_cache(maxsize=8192)
def text_box(
    text: str, x: float, y: float, anchor: str = "start", size: float = 12.0, bold: bool = False, angle: float = 0.0
) -> Box:
    """Return what a Text with these fields covers."""
    wide, half = text_width(text, size, bold), size * (TALL if angle % 90 == 0 else 1.0) / 2
    begin = {"start": 0.0, "middle": -wide / 2, "end": -wide}[anchor]
    if not angle:
        return Box(x + begin, y - half, x + begin + wide, y + half)
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    corners = tuple(
        (x + along * cos + down * sin, y - along * sin + down * cos)
        for along, down in ((begin, -half), (begin + wide, -half), (begin + wide, half), (begin, half))
    )
    across, upright = zip(*corners, strict=True)
    whole = () if angle % 90 == 0 else corners
    return Box(min(across), min(upright), max(across), max(upright), whole)


def _corners(box: Box) -> Corners:
    return box.corners or ((box[0], box[1]), (box[2], box[1]), (box[2], box[3]), (box[0], box[3]))


def _touch(one: Corners, other: Corners) -> bool:
    """Whether two rectangles have a point in common: no line along a side of either separates them."""
    for corners in (one, other):
        for at in (0, 1):
            (x0, y0), (x1, y1) = corners[at], corners[at + 1]
            nx, ny = y1 - y0, x0 - x1
            mine = [x * nx + y * ny for x, y in one]
            others = [x * nx + y * ny for x, y in other]
            if max(mine) <= min(others) or max(others) <= min(mine):
                return False
    return True

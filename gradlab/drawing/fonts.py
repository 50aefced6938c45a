"""How wide words are in the letters of a still picture, DejaVu Sans."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import matplotlib
from matplotlib import ft2font
from matplotlib.ft2font import FT2Font

_FINE = 1000  # the size in pixels at which widths are taken
# matplotlib 3.10 gave the flags a class of their own
_LOAD_FLAGS: Any = getattr(ft2font, "LoadFlags", ft2font)
_NO_HINTING = getattr(_LOAD_FLAGS, "NO_HINTING", None) or _LOAD_FLAGS.LOAD_NO_HINTING


@lru_cache(maxsize=16384)
def text_width(text: str, size: float = 12.0, bold: bool = False) -> float:
    """Return the width of a text in CSS pixels, without kerning."""
    return size * sum(_advance(character, bold) for character in text)


@lru_cache(maxsize=2048)
def shorten(text: str, wide: float, size: float = 12.0, *, bold: bool = False) -> str:
    """Cut a text to a width in CSS pixels, an ellipsis in place of what is cut; "" where nothing fits."""
    if text_width(text, size, bold) <= wide:
        return text
    cuts = (f"{text[:left].rstrip()}\u2026" for left in range(len(text) - 1, 0, -1))
    return next((cut for cut in cuts if text_width(cut, size, bold) <= wide), "")


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

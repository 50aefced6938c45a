"""How wide a text is: from the advance widths of DejaVu Sans, which few sans-serif fonts of browsers exceed."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import matplotlib
from matplotlib import ft2font
from matplotlib.ft2font import FT2Font

TALL = 1.1
"""The height of a line of text, in units of its size."""
_FINE = 1000  # the size in pixels at which widths are taken
# matplotlib 3.10 gave the flags a class of their own
_NO_HINTING: Any = getattr(ft2font, "LoadFlags", ft2font)
_NO_HINTING = getattr(_NO_HINTING, "NO_HINTING", None) or _NO_HINTING.LOAD_NO_HINTING


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

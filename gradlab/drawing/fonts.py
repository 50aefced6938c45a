"""Functions that measure, shorten and wrap strings in DejaVu Sans, the font of still pictures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

_FAMILY: dict[str, Any] = {"family": "DejaVu Sans", "style": "normal", "variant": "normal", "stretch": "normal"}
_FONTS = {bold: FontProperties(weight="bold" if bold else "normal", size=100, **_FAMILY) for bold in (False, True)}


@lru_cache(maxsize=16384)
def text_width(text: str, size: float = 12.0, bold: bool = False) -> float:
    """Return the width of ``text`` at a font size of ``size``, both in CSS pixels."""
    return float(text_to_path.get_text_width_height_descent(text, _FONTS[bold], False)[0]) * size / 100


@lru_cache(maxsize=2048)
def shorten(text: str, wide: float, size: float = 12.0, *, bold: bool = False) -> str:
    """Return ``text``, cut off with an ellipsis if it is wider than ``wide`` CSS pixels. Return "" if nothing fits."""
    if text_width(text, size, bold) <= wide:
        return text
    cuts = (f"{text[:left].rstrip()}\u2026" for left in range(len(text) - 1, 0, -1))
    return next((cut for cut in cuts if text_width(cut, size, bold) <= wide), "")


def fitting(texts: Sequence[str], wide: float, size: float = 12.0, *, bold: bool = False) -> str:
    """Return the first of ``texts`` that fits in ``wide`` CSS pixels. If none fits, return the last one, shortened."""
    fits = (text for text in texts if text_width(text, size, bold) <= wide)
    return next(fits, "") or shorten(texts[-1], wide, size, bold=bold)


def wrapped(text: str, wide: float, size: float = 12.0) -> list[str]:
    """Return ``text`` in lines of at most ``wide`` CSS pixels, broken between words; only a long word may be wider."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > wide:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines

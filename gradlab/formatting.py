"""Words and numbers as learners read them: HTML, short numbers, bytes."""

from __future__ import annotations

import html
import math
import re


def prose(text: str) -> str:
    """Return a text as HTML: what stands between backticks is code, a line break is one."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False)).replace("\n", "<br>")


def short(value: float) -> str:
    """Write a number in at most about six characters: ``0.31``, ``12.4``, ``25k``, ``1e30``, ``inf``, ``NaN``."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "\u2212inf"
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 999_950 or size < 0.0005:
        mantissa, exponent = f"{size:.1e}".split("e")
        text = f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    elif size >= 10_000:
        text = f"{size / 1000:.3g}k"
    elif size >= 1000:
        text = f"{size:.0f}"
    else:
        text = f"{size:.3g}"
    return ("\u2212" if value < 0 else "") + text.replace("-", "\u2212")


def bytes_text(count: float) -> str:
    """Write a number of bytes with a binary unit: ``512 B``, ``24.1 KiB``, ``6.1 TiB``."""
    if not math.isfinite(count):
        return short(count)
    size, unit = abs(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 999.5 or unit == "PiB":
            break
        size /= 1024
    text = short(size) if unit == "PiB" else f"{size:.0f}" if unit == "B" or size >= 100 else f"{size:.3g}"
    return ("\u2212" if count < 0 else "") + f"{text} {unit}"

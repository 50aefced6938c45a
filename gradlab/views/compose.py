"""compose: several panel pictures on one sheet, for the picture that a notebook saves."""

from __future__ import annotations

import io
from collections.abc import Sequence

from PIL import Image


def compose(pngs: Sequence[bytes], columns: int = 3) -> bytes:
    """Paste PNGs left to right, top to bottom, ``columns`` a row, onto a white sheet; return it as PNG bytes."""
    if columns < 1:
        raise ValueError(f"compose: columns must be at least 1, got {columns}")
    pictures = [Image.open(io.BytesIO(png)).convert("RGB") for png in pngs]
    rows = [pictures[at : at + columns] for at in range(0, len(pictures), columns)]
    wide = max((sum(picture.width for picture in row) for row in rows), default=1)
    sheet = Image.new("RGB", (wide, sum(max(p.height for p in row) for row in rows) or 1), "white")
    top = 0
    for row in rows:
        left = 0
        for picture in row:
            sheet.paste(picture, (left, top))
            left += picture.width
        top += max(picture.height for picture in row)
    seen = sheet.getcolors(256)
    out = io.BytesIO()
    # few colours in all: an exact palette; else the nearest 256, never dithered
    few = sheet.quantize(
        256, method=Image.Quantize.MEDIANCUT if seen is None else Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
    )
    few.save(out, "PNG", optimize=True)
    return out.getvalue()

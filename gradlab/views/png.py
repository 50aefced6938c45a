"""Pixels to a small PNG, fast: a fixed palette and one look-up a pixel."""

from __future__ import annotations

import io
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from PIL import Image

Pixels = npt.NDArray[np.uint8]
COLOURS = 64
GREYS = (84, 118, 150, 180, 207, 233)
"""Few, since the soft edges of text are most of what a picture weighs."""


@lru_cache(maxsize=32)
def palette(colours: tuple[str, ...]) -> tuple[Pixels, Pixels]:
    """Make the 64-colour palette of some base colours: (64 x 3 entries, entry for each of 32768 5-bit colours).

    Greys come first, then each base colour with its way to white and to black: what antialiasing blends them into.
    """
    entries = [(0, 0, 0), (0x22, 0x22, 0x22), (255, 255, 255), *((grey,) * 3 for grey in GREYS)]
    ways = max(1, (COLOURS - len(entries)) // max(1, len(colours)))
    # the colour itself first, so that it survives exactly even when there are many base colours
    steps = (0.0, 0.5, 0.25, 0.75, -0.4, 0.12, 0.88, -0.7, 0.62, 0.37)[:ways]
    for colour in colours:
        base = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)], dtype=float)
        entries += [tuple(base + (255 - base) * step if step >= 0 else base * (1 + step)) for step in steps]
    table = np.zeros((COLOURS, 3), dtype=np.uint8)
    table[: len(entries)] = np.round(np.array(entries[:COLOURS]))
    levels = (np.arange(32) * 255 / 31).astype(np.float32)
    blue, green, red = np.meshgrid(levels, levels, levels, indexing="ij")
    every = np.stack([red.ravel(), green.ravel(), blue.ravel()], axis=1)
    known = table[: min(len(entries), COLOURS)].astype(np.float32)
    # weights of red, green and blue in how different two colours look
    weight = np.array([0.55, 0.77, 0.33], dtype=np.float32)
    every, known = every * weight, known * weight
    # |a - b|^2 without its part |a|^2, which no choice of b changes
    distance = (known**2).sum(axis=1) - 2 * every @ known.T
    lookup = distance.argmin(axis=1).astype(np.uint8)
    for entry in range(len(known) - 1, -1, -1):  # an exact entry wins its own cell
        red5, green5, blue5 = (int(channel) >> 3 for channel in table[entry])
        lookup[red5 | green5 << 5 | blue5 << 10] = entry
    return table, lookup


class Encoder:
    """Turns RGBA frames of one size into PNG bytes, with its working memory kept from frame to frame."""

    def __init__(self, width: int, height: int, colours: tuple[str, ...]) -> None:
        """Prepare for frames of ``width`` x ``height`` pixels drawn mostly in ``colours`` ("#RRGGBB") and greys."""
        table, self._lookup = palette(colours)
        self._palette = table.tobytes()
        self._key = np.empty((height, width), dtype=np.uint32)
        self._part = np.empty((height, width), dtype=np.uint32)
        self._entries = np.empty((height, width), dtype=np.uint8)

    def encode(self, pixels: Pixels) -> bytes:
        """Return the frame (height x width x 4, opaque) as a PNG of 64 colours."""
        packed = np.ascontiguousarray(pixels).view("<u4")[..., 0]
        key, part = self._key, self._part
        np.right_shift(packed, 3, out=key)  # red
        key &= 0x1F
        for shift, mask in ((6, 0x3E0), (9, 0x7C00)):  # green, blue
            np.right_shift(packed, shift, out=part)
            part &= mask
            key |= part
        # Pillow's own search for the nearest of 64 colours takes several times as long as this look-up.
        np.take(self._lookup, key, out=self._entries, mode="clip")
        image = Image.fromarray(self._entries)
        image.putpalette(self._palette)
        png = io.BytesIO()
        image.save(png, "PNG", compress_level=4)
        return png.getvalue()

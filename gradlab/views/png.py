"""Pixels to a small PNG, fast: a fixed palette and one look-up a pixel."""

from __future__ import annotations

import io
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from PIL import Image

Pixels = npt.NDArray[np.uint8]
COLOURS = 64
_STRIP = 32  # rows
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
    """Turns RGBA frames into PNG bytes with one palette."""

    def __init__(self, colours: tuple[str, ...]) -> None:
        """Prepare for frames drawn mostly in ``colours`` ("#RRGGBB") and greys."""
        table, self._lookup = palette(colours)
        self._palette = table.tobytes()
        self._entries: Pixels = np.empty((0, 0), dtype=np.uint8)
        self._png = b""

    def encode(self, pixels: Pixels) -> bytes:
        """Return the frame (height x width x 4, opaque) as a PNG of 64 colours; the same bytes if it looks the same."""
        packed = np.ascontiguousarray(pixels).view("<u4")[..., 0]
        entries = np.empty(packed.shape, dtype=np.uint8)
        # Pillow's own search for the nearest of 64 colours takes several times as long as this look-up. A strip at a
        # time stays in the processor's cache, and needs no working memory to speak of.
        for top in range(0, len(packed), _STRIP):
            strip = packed[top : top + _STRIP]
            key = (strip >> 3) & 0x1F  # red
            key |= (strip >> 6) & 0x3E0  # green
            key |= (strip >> 9) & 0x7C00  # blue
            np.take(self._lookup, key, out=entries[top : top + _STRIP], mode="clip")
        # Comparing is cheaper than encoding, and cannot be fooled by a scene whose list grew in place.
        if np.array_equal(entries, self._entries):
            return self._png
        image = Image.fromarray(entries)
        image.putpalette(self._palette)
        png = io.BytesIO()
        image.save(png, "PNG", compress_level=4)
        self._entries, self._png = entries, png.getvalue()
        return self._png

"""Label: a text that moves at every frame, put together from letters that were drawn once.

Laying out and rendering a short text costs matplotlib about 1 ms; three panels hold some twenty. From kept letters it
costs a twentieth. Only kerning is lost.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_rgb
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text

from .png import Pixels


class Label(Text):
    """One line of upright text. With ``backed`` it stands on a white box."""

    def __init__(self, *args: Any, backed: bool = False, **look: Any) -> None:
        """Take what ``Text`` takes."""
        super().__init__(*args, **look)
        self.backed = backed

    def wide(self) -> float:
        """Return the width of the text in real pixels."""
        return float(self._ink().shape[1])

    def draw(self, renderer: Any) -> None:
        """Paste the letters; a text of several lines, or with a frame, is left to matplotlib."""
        text = self.get_text()
        if not text or not self.get_visible():
            return
        if "\n" in text or self.get_bbox_patch() is not None or not isinstance(renderer, RendererAgg):
            super().draw(renderer)
            return
        x, y = self.get_transform().transform(self.get_position())
        if not (abs(x) < 1e5 and abs(y) < 1e5):
            return
        ink = self._ink()
        tall, wide = ink.shape
        pixel = self._pixels()
        x -= {"left": 0.0, "center": wide / 2, "right": wide}[self.get_horizontalalignment()]
        # the em box of the letters: 0.3 below the base line, 0.73 the height of capitals
        y -= {"center": 0.3 + 0.365, "bottom": 0.1, "top": 1.1}.get(self.get_verticalalignment(), 0.3) * pixel
        strength = ink[..., None].astype(np.float32) / 255
        colour = np.array(to_rgb(self.get_color()), dtype=np.float32) * 255
        image = np.empty((tall, wide, 4), dtype=np.uint8)
        if self.backed:
            image[..., :3] = 255 + (colour - 255) * strength
            image[..., 3] = 255
            # letters that reach below or above their usual height are rare: a box around the usual height will do
            spare = round(0.12 * pixel)
            image[:spare][ink[:spare] == 0] = 0
        else:
            image[..., :3] = colour
            image[..., 3] = ink
        gc = renderer.new_gc()
        renderer.draw_image(gc, round(x), round(y), image[::-1])
        gc.restore()
        self.stale = False

    def _pixels(self) -> float:
        figure = self.get_figure(root=True)
        return float(self.get_fontsize()) / 72 * figure.dpi if figure is not None else 10.0

    def _ink(self) -> Pixels:
        """Return how dark each pixel is, 0 to 255; the base line lies 0.3 of the height above the lowest row."""
        pixel, weight = self._pixels(), str(self.get_fontweight())
        letters = [letter(character, pixel, weight) for character in self.get_text()]
        starts = np.cumsum([0.0, *(advance for _, advance in letters)])
        side = round(pixel * 0.15)
        ink = np.zeros((round(pixel * 1.4), round(starts[-1]) + 2 * side), dtype=np.uint8)
        for start, (glyph, _) in zip(starts, letters, strict=False):
            at = round(start)
            part = ink[:, at : at + glyph.shape[1]]
            np.maximum(part, glyph[:, : part.shape[1]], out=part)
        return ink[:, : round(starts[-1]) + side] if not self.backed else ink


@lru_cache(maxsize=1024)
def letter(character: str, pixel: float, weight: str) -> tuple[Pixels, float]:
    """Return one letter (as dark as 0 to 255, with 0.15 ``pixel`` free on the left) and how far the next one lies."""
    font = FontProperties(family=["DejaVu Sans"], size=pixel, weight=weight)
    agg: Any = RendererAgg  # matplotlib has no types for it
    tall, wide, side = round(pixel * 1.4), round(pixel * 1.6), round(pixel * 0.15)
    renderer = agg(wide, tall, 72)
    gc = renderer.new_gc()
    renderer.draw_text(gc, side, tall - round(pixel * 0.3), character, font, 0)
    # by difference, since the width of a single letter is that of its ink
    long, short = (renderer.get_text_width_height_descent(f"|{character * n}|", font, False)[0] for n in (9, 1))
    return np.asarray(renderer.buffer_rgba())[..., 3].copy(), (long - short) / 8

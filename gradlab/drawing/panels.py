"""Which function draws which kind of scene."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import scenes
from .fit import draw_fit
from .gradient import draw_arrows
from .landscape import draw_landscape, draw_slice
from .loss import draw_loss, draw_scaler
from .marks import Drawing
from .memory import draw_memory
from .predictions import draw_samples

SMALLEST = (260, 200)
"""The least width and height, in CSS pixels, that a panel is laid out for; a smaller one is made so large."""
_PANELS: dict[type, Callable[[Any, int, int], Drawing]] = {
    scenes.Arrows: draw_arrows,
    scenes.Landscape: draw_landscape,
    scenes.Slice: draw_slice,
    scenes.ScalerHistory: draw_scaler,
    scenes.Samples: draw_samples,
    scenes.Memory: draw_memory,
    scenes.Fit: draw_fit,
}


def draw(
    scene: scenes.Scene, width: int = 400, height: int = 260, *, zoom: tuple[float, float] | None = None
) -> Drawing:
    """Return the panel of a scene, ``width`` x ``height`` CSS pixels; ``zoom`` is a range of updates of the loss.

    Raises TypeError for what is no scene.
    """
    width, height = max(width, SMALLEST[0]), max(height, SMALLEST[1])
    if isinstance(scene, scenes.Curve):
        return draw_loss(scene, width, height, zoom)
    panel = _PANELS.get(type(scene))
    if panel is None:
        known = ", ".join(kind.__name__ for kind in (scenes.Curve, *_PANELS))
        raise TypeError(f"no panel draws a {type(scene).__name__}; scenes are: {known}")
    return panel(scene, width, height)

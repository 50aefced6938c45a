"""Which function draws which kind of scene."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import scenes
from .curves import draw_loss, draw_scaler
from .fit import draw_fit
from .gradient import draw_arrows
from .landscape import draw_landscape, draw_slice
from .marks import Drawing
from .memory import draw_memory
from .samples import draw_samples

_PANELS: dict[type, Callable[[Any], Drawing]] = {
    scenes.Curve: draw_loss,
    scenes.Arrows: draw_arrows,
    scenes.Landscape: draw_landscape,
    scenes.Slice: draw_slice,
    scenes.ScalerHistory: draw_scaler,
    scenes.Samples: draw_samples,
    scenes.Memory: draw_memory,
    scenes.Fit: draw_fit,
}


def draw(scene: scenes.Scene) -> Drawing:
    """Return the panel of a scene; raises TypeError for what is no scene."""
    panel = _PANELS.get(type(scene))
    if panel is None:
        known = ", ".join(kind.__name__ for kind in _PANELS)
        raise TypeError(f"no panel draws a {type(scene).__name__}; scenes are: {known}")
    return panel(scene)

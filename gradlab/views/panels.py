"""Which panel draws which kind of scenes."""

from __future__ import annotations

from typing import Any

from .. import scenes
from .arrows import ArrowsPanel
from .bars import BarsPanel
from .boundary import BoundaryPanel
from .canvas import Canvas
from .fit import GpuFitPanel
from .landscape import LandscapePanel
from .loss import LossPanel
from .memory import MemoryPanel
from .samples import SamplesPanel
from .scaler import ScalerPanel
from .slice import SlicePanel


def panel_for(scene_type: type) -> type[Canvas[Any]]:
    """Return the panel class that draws this class of scene; TypeError when there is none."""
    panels: dict[type, type[Canvas[Any]]] = {
        scenes.Curve: LossPanel,
        scenes.Arrows: ArrowsPanel,
        scenes.Bars: BarsPanel,
        scenes.Landscape: LandscapePanel,
        scenes.Slice: SlicePanel,
        scenes.ScalerHistory: ScalerPanel,
        scenes.Boundary: BoundaryPanel,
        scenes.Samples: SamplesPanel,
        scenes.Memory: MemoryPanel,
        scenes.Fit: GpuFitPanel,
    }
    try:
        return panels[scene_type]
    except KeyError:
        raise TypeError(f"no panel draws a {scene_type.__name__}; scenes: {[s.__name__ for s in panels]}") from None

"""Which panel draws which kind of scene."""

from __future__ import annotations

from typing import Any

from ..scenes import kinds as scene
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
        scene.Curve: LossPanel,
        scene.Arrows: ArrowsPanel,
        scene.Bars: BarsPanel,
        scene.Landscape: LandscapePanel,
        scene.Slice: SlicePanel,
        scene.ScalerHistory: ScalerPanel,
        scene.Boundary: BoundaryPanel,
        scene.Samples: SamplesPanel,
        scene.Memory: MemoryPanel,
        scene.Fit: GpuFitPanel,
    }
    try:
        return panels[scene_type]
    except KeyError:
        raise TypeError(f"no panel draws a {scene_type.__name__}; scenes: {[s.__name__ for s in panels]}") from None

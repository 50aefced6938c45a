"""The panels: each turns one kind of scene into a small PNG, with matplotlib and without pyplot."""

from __future__ import annotations

from typing import Any

from gradlab import scene
from gradlab.views.arrows import ArrowsPanel
from gradlab.views.bars import BarsPanel
from gradlab.views.blank import BlankPanel
from gradlab.views.boundary import BoundaryPanel
from gradlab.views.canvas import Canvas
from gradlab.views.comparison import comparison_figure
from gradlab.views.compose import compose
from gradlab.views.fit import FitPanel
from gradlab.views.landscape import LandscapePanel
from gradlab.views.loss import LossPanel
from gradlab.views.memory import MemoryPanel
from gradlab.views.samples import SamplesPanel
from gradlab.views.scaler import ScalerPanel
from gradlab.views.slice import SlicePanel

__all__ = ["BlankPanel", "Canvas", "comparison_figure", "compose", "panel_for"]


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
        scene.Fit: FitPanel,
    }
    try:
        return panels[scene_type]
    except KeyError:
        raise TypeError(f"no panel draws a {scene_type.__name__}; scenes: {[s.__name__ for s in panels]}") from None

"""Scenes as Drawings: marks with places, roles for colours and words, for the browser and for paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from .marks import Axis as Axis
    from .marks import Band as Band
    from .marks import Dots as Dots
    from .marks import Drag as Drag
    from .marks import Drawing as Drawing
    from .marks import Image as Image
    from .marks import Mark as Mark
    from .marks import Path as Path
    from .marks import Readout as Readout
    from .marks import Text as Text
    from .panels import draw as draw
    from .panels import to_png as to_png
    from .panels import to_svg as to_svg
    from .palette import COLOURS as COLOURS
    from .palette import colour as colour
    from .wire import Encoder as Encoder

load_lazily(__name__)

"""The panels: each turns one kind of scene into a small PNG, with matplotlib and without its global state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from .blank import MessagePanel as MessagePanel
    from .canvas import Canvas as Canvas
    from .compose import compose as compose
    from .palette import ACTIVATIONS as ACTIVATIONS
    from .palette import CLASSES as CLASSES
    from .palette import FAINT as FAINT
    from .palette import FRESH as FRESH
    from .palette import GRADIENTS as GRADIENTS
    from .palette import GREY as GREY
    from .palette import INK as INK
    from .palette import LOSS as LOSS
    from .palette import MARKERS as MARKERS
    from .palette import OPTIMIZER as OPTIMIZER
    from .palette import SCALE as SCALE
    from .palette import STALE as STALE
    from .palette import STALE_HATCH as STALE_HATCH
    from .palette import WEIGHTS as WEIGHTS
    from .palette import WRONG as WRONG
    from .palette import tint as tint
    from .panels import panel_for as panel_for
    from .png import Encoder as Encoder
    from .scaler import SUPERSCRIPTS as SUPERSCRIPTS
    from .stack import CATEGORY_STYLES as CATEGORY_STYLES
    from .style import own_look as own_look

load_lazily(__name__)

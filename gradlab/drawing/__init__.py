"""Scenes as Drawings: marks with places, roles for colours and words, for the browser and for paper."""

from .axes import SUPERSCRIPTS, Axes, Side, from_zero, make_axes, panel_axes, value_limits
from .builder import PanelBuilder, draw_chip, draw_loop, draw_message, fade, make_box
from .gradient import BATCH_STYLES, add_arrow_names, add_arrows, add_key, arrow_ends, arrow_outline
from .labels import Box, Spot, shorten, spread_labels, text_width, wrapped
from .loss import draw_comparison
from .marks import Axis, Band, CodeText, Dots, Drag, Drawing, Image, Mark, Path, Readout, Text
from .memory import area_look, stacked, text_role
from .paint import own_look, small_png, to_png, to_svg
from .palette import colour, themed_svg, tint
from .panels import draw
from .wire import Encoder

__all__ = [
    "BATCH_STYLES", "SUPERSCRIPTS", "Axes", "Axis", "Band", "Box", "CodeText", "Dots", "Drag", "Drawing",
    "Encoder", "Image", "Mark", "PanelBuilder", "Path", "Readout", "Side", "Spot", "Text", "add_arrow_names",
    "add_arrows", "add_key", "area_look", "arrow_ends", "arrow_outline", "colour", "draw", "draw_chip",
    "draw_comparison", "draw_loop", "draw_message", "fade", "from_zero", "make_axes", "make_box", "own_look",
    "panel_axes", "shorten", "small_png", "spread_labels", "stacked", "text_role", "text_width", "themed_svg",
    "tint", "to_png", "to_svg", "value_limits", "wrapped",
]  # fmt: skip

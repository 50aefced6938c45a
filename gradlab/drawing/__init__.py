"""Drawings of scenes for the browser and for still pictures: axes, marks in data coordinates, and colours by role."""

from . import fit as fit
from . import samples as samples
from .curves import draw_comparison, power_axis, step_points
from .gradient import (
    BATCH_STYLES,
    applied_text,
    arrow_ends,
    arrow_marks,
    arrow_names,
    batch_area,
    batch_key,
    batch_style,
    plane_axes,
)
from .landscape import surface_axes, surface_marks
from .limits import box_points, from_zero, numbers, points, value_axis
from .listing import Listing
from .marks import AXES_EDGE, Area, Arrow, Axes, Axis, AxisSpan, Band, Dots, Drawing, Image, Key, Line, Mark, Text, draw
from .memory import area_style, stacked, text_role
from .paint import Placed, gradlab_style, in_rows, small_png, to_png, to_svg
from .palette import colour, themed_svg, tint
from .wire import Encoder

__all__ = [
    "AXES_EDGE", "BATCH_STYLES", "Area", "Arrow", "Axes", "Axis", "AxisSpan", "Band", "Dots", "Drawing", "Encoder",
    "Image", "Key", "Line", "Listing", "Mark", "Placed", "Text", "applied_text", "area_style",
    "arrow_ends", "arrow_marks", "arrow_names", "batch_area", "batch_key", "batch_style", "box_points", "colour",
    "draw", "draw_comparison", "from_zero", "gradlab_style", "in_rows", "numbers", "plane_axes",
    "points", "power_axis", "small_png", "stacked", "step_points", "surface_axes", "surface_marks",
    "text_role", "themed_svg", "tint", "to_png", "to_svg", "value_axis",
]  # fmt: skip

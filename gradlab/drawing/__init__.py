"""Scenes as Drawings: marks with places, roles for colours and words, for the browser and for paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from .axes import SUPERSCRIPTS as SUPERSCRIPTS
    from .axes import Axes as Axes
    from .axes import Side as Side
    from .axes import from_zero as from_zero
    from .axes import make_axes as make_axes
    from .axes import panel_axes as panel_axes
    from .axes import value_limits as value_limits
    from .builder import PanelBuilder as PanelBuilder
    from .builder import draw_chip as draw_chip
    from .builder import draw_loop as draw_loop
    from .builder import draw_message as draw_message
    from .builder import fade as fade
    from .builder import make_box as make_box
    from .gradient import BATCH_STYLES as BATCH_STYLES
    from .gradient import add_arrow_names as add_arrow_names
    from .gradient import add_arrows as add_arrows
    from .gradient import add_key as add_key
    from .gradient import arrow_ends as arrow_ends
    from .gradient import arrow_outline as arrow_outline
    from .labels import Box as Box
    from .labels import Spot as Spot
    from .labels import shorten as shorten
    from .labels import spread_labels as spread_labels
    from .labels import text_width as text_width
    from .labels import wrapped as wrapped
    from .loss import draw_comparison as draw_comparison
    from .marks import Axis as Axis
    from .marks import Band as Band
    from .marks import CodeText as CodeText
    from .marks import Dots as Dots
    from .marks import Drag as Drag
    from .marks import Drawing as Drawing
    from .marks import Image as Image
    from .marks import Mark as Mark
    from .marks import Path as Path
    from .marks import Readout as Readout
    from .marks import Text as Text
    from .memory import area_look as area_look
    from .memory import stacked as stacked
    from .memory import text_role as text_role
    from .paint import own_look as own_look
    from .paint import small_png as small_png
    from .paint import to_png as to_png
    from .paint import to_svg as to_svg
    from .palette import colour as colour
    from .palette import themed_svg as themed_svg
    from .palette import tint as tint
    from .panels import draw as draw
    from .wire import Encoder as Encoder

load_lazily(__name__, needs_torch=False)

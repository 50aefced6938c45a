"""Checks that the texts of a painted Drawing do not overlap and are within their panel, by matplotlib's extents."""

from __future__ import annotations

import itertools
import math

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from gradlab.drawing import Drawing, Listing, Placed, gradlab_style
from gradlab.drawing.paint import make_figure


def painted(drawing: Drawing | Listing, width: float, height: float, density: float = 1.0) -> Figure:
    """Return the figure of a Drawing, with ``density`` pixels per CSS pixel."""
    with gradlab_style():
        figure = make_figure([Placed(drawing, 0, 0, width, height)], density)
        FigureCanvasAgg(figure)
        figure.draw_without_rendering()
    return figure


def texts_of(figure: Figure) -> dict[Text, np.ndarray]:
    """Return the texts of a figure with their corners in pixels, without the space above capitals."""
    corners, gap = {}, figure.dpi / 96  # a CSS pixel
    for text in figure.findobj(Text):
        if not (text.get_visible() and text.get_text().strip()):
            continue
        angle = math.radians(text.get_rotation())
        text.set_rotation(0)
        left, bottom, right, top = text.get_window_extent().extents
        text.set_rotation(math.degrees(angle))
        cos, sin = math.cos(angle), math.sin(angle)
        box = np.array([[left, bottom + gap], [right, bottom + gap], [right, top - gap], [left, top - gap]])
        anchor = text.get_transform().transform(text.get_position())
        corners[text] = (box - anchor) @ np.array([[cos, sin], [-sin, cos]]) + anchor
    return corners


def overlap(first: np.ndarray, second: np.ndarray) -> bool:
    """Return whether two rectangles overlap: no side of either separates them."""
    for corners in (first, second):
        for side in (corners[1] - corners[0], corners[2] - corners[1]):
            a, b = first @ side, second @ side
            if a.max() <= b.min() + 0.1 or b.max() <= a.min() + 0.1:
                return False
    return True


def check_labels(drawing: Drawing, width: float, height: float) -> None:
    """Fail if a text overlaps another, leaves the panel, or is too small or too large, in a PNG of ``to_png``."""
    density = 2.0  # as in to_png; at 1, hinting makes some texts 4 % wider than in any picture
    corners = {text: box / density for text, box in texts_of(painted(drawing, width, height, density)).items()}
    for text, box in corners.items():
        assert box.min() >= -1, text
        assert (box.max(axis=0) <= [width + 1, height + 1]).all(), text
        assert 11 <= float(text.get_fontsize()) * 96 / 72 <= 14, text
    for (first, corners_of_first), (second, corners_of_second) in itertools.combinations(corners.items(), 2):
        covered = (first.get_zorder() >= 1e6) != (second.get_zorder() >= 1e6)  # by the frame of a notice
        assert covered or not overlap(corners_of_first, corners_of_second), f"{first} and {second}"

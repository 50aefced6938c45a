"""BoundaryPanel: what a classifier says over the plane, with the data on it."""

from __future__ import annotations

import numpy as np
from matplotlib.image import AxesImage

from ..scenes import Boundary
from .canvas import Canvas
from .limits import Range, numbers
from .palette import CLASSES, INK, MARKERS, tint

SHADES = (0.12, 0.25, 0.38, 0.5)
"""Strength of the tint from unsure to sure: entries that the palette of the PNG holds exactly."""


class BoundaryPanel(Canvas[Boundary]):
    """Regions in the tint of the class that wins there, stronger where the model is surer; a marker shape a class."""

    title = "what the model says"
    colours = CLASSES[:6]

    def build(self) -> None:
        """Make the image and one set of markers a class."""
        self.axes = self.add_axes(left=62)
        self.axes.set_xlabel("input 1", labelpad=2)
        self.axes.set_ylabel("input 2", labelpad=2)
        self._image: AxesImage = self.axes.imshow(
            np.ones((2, 2, 3)), origin="lower", aspect="auto", interpolation="nearest", extent=(0, 1, 0, 1)
        )
        self.animate(self._image)
        self._points = []
        for colour, marker in zip(CLASSES, MARKERS, strict=True):
            (points,) = self.axes.plot([], [], ls="", marker=marker, markersize=6, mfc=colour, mec="white", mew=0.8)
            self._points.append(points)
        self.animate(*self._points)
        self._x, self._y = Range(), Range()

    def draw_scene(self, scene: Boundary) -> None:
        """Shade the grid and put the points on it."""
        label, sure = np.array(scene.label, dtype=int), np.array(scene.confidence, dtype=float)
        points = numbers([edge for point in scene.points for edge in point]).reshape(-1, 2)
        x, y = numbers(scene.x), numbers(scene.y)
        extent = []
        for edges, range_, of in ((x, self._x, points[:, 0]), (y, self._y, points[:, 1])):
            finite = edges[np.isfinite(edges)]
            if len(finite) > 1:  # a grid point is the middle of its cell
                half = (finite.max() - finite.min()) / (len(finite) - 1) / 2
                extent.append((float(finite.min() - half), float(finite.max() + half)))
            else:
                extent.append(range_.fit([*finite, *of]))
        if min(high - low for low, high in extent) <= 0:
            extent = [(0.0, 1.0), (0.0, 1.0)]
        self.set_limits(self.axes, *extent)
        drawable = label.ndim == 2 and label.size and label.shape == sure.shape
        if drawable:
            # from chance to certain in a few tints, so that the picture stays small
            step = np.floor(np.clip(np.nan_to_num(sure), 0, 0.999) * len(SHADES)).astype(int)
            shades = np.array([[tint(c, strength) for strength in SHADES] for c in CLASSES])
            self._image.set_data(shades[label % len(CLASSES), step])
            self._image.set_extent((*extent[0], *extent[1]))
        self._image.set_visible(bool(drawable))
        classes = np.array(scene.point_labels, dtype=int)[: len(points)]
        for at, markers in enumerate(self._points):
            mine = points[: len(classes)][classes % len(CLASSES) == at]
            markers.set_data(mine[:, 0], mine[:, 1])
        self.corner_text.set_text(f"{scene.accuracy:.0%} right" if np.isfinite(scene.accuracy) else "")
        self.corner_text.set_color(INK)

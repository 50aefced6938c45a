"""outline: many polygons as one path, since a hatch is drawn once a path and is what costs most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.path import Path

from .limits import Numbers

NOTHING = Path(np.zeros((0, 2)))


def outline(polygons: Sequence[Numbers]) -> Path:
    """Return one closed path around all polygons, each an n x 2 array of corners."""
    if not polygons:
        return NOTHING
    corners = np.concatenate([np.vstack([polygon, polygon[:1]]) for polygon in polygons])
    codes = np.concatenate(
        [[Path.MOVETO, *[Path.LINETO] * (len(polygon) - 1), Path.CLOSEPOLY] for polygon in polygons]
    ).astype(Path.code_type)
    return Path(corners, codes)

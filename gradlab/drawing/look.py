"""The matplotlib settings that all pictures share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib

from .palette import GREY, INK

# A learner's own rcParams (dark_background, usetex, xkcd) must not change the pictures.
RC: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 10.0,
    "text.usetex": False,
    "text.color": INK,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.grid": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": True,
    "axes.spines.bottom": True,
    "axes.unicode_minus": True,
    "axes.xmargin": 0.0,
    "axes.ymargin": 0.0,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 10.0,
    "ytick.labelsize": 10.0,
    "xtick.direction": "out",
    "ytick.direction": "out",
    "xtick.minor.visible": False,
    "ytick.minor.visible": False,
    "xtick.top": False,
    "ytick.right": False,
    "lines.linewidth": 1.8,
    "lines.antialiased": True,
    "patch.linewidth": 1.0,
    "hatch.linewidth": 1.0,
    "path.simplify": True,
    "path.sketch": None,
    "path.effects": [],
}


@contextmanager
def own_look() -> Iterator[None]:
    """Make artists with the settings of this module, whatever the learner's rcParams say."""
    with matplotlib.rc_context(RC):  # type: ignore[arg-type, unused-ignore]
        yield

"""One meaning for each colour, and short words for numbers: the look that all panels share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib

WEIGHTS = "#0072B2"
GRADIENTS = "#E69F00"
OPTIMIZER = "#009E73"
ACTIVATIONS = "#56B4E9"
FRESH = "#F0E442"  # always with a dark outline: yellow on white is too pale by itself
STALE = "#D55E00"  # always hatched or dashed too
LOSS = "#000000"
SCALE = "#CC79A7"

INK = "#222222"
GREY = "#767676"
FAINT = "#D8D8D8"
WRONG = "#882255"
# Classes of a classifier are none of the eight meanings above, so they get colours of their own (Paul Tol's muted).
CLASSES = ("#332288", "#DDCC77", "#44AA99", "#882255", "#88CCEE", "#117733", "#CC6677", "#999933", "#AA4499", "#661100")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")

STALE_HATCH = "///"

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


def tint(colour: str, strength: float) -> tuple[float, float, float]:
    """Mix a colour with white: strength 0 is white, 1 the colour itself."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (1 - strength * (1 - channel) for channel in channels)
    return red, green, blue

"""One meaning for each colour through the whole series (the Okabe-Ito eight), a few greys, and colours of classes.

A role is the name of a meaning. These are the colours on white paper; the browser's other themes are in
``front/palette.js``.
"""

from __future__ import annotations

import colorsys
import re

COLOURS = {
    "paper": "#FFFFFF",
    "ink": "#222222",
    "grey": "#6B6B6B",
    "faint": "#D8D8D8",
    "weights": "#0072B2",
    "gradients": "#E69F00",
    "optimizer": "#009E73",
    "activations": "#56B4E9",
    "fresh": "#F0E442",  # always with a dark outline: yellow on white is too pale by itself
    "stale": "#D55E00",  # always hatched or dashed too
    "loss": "#000000",
    "scale": "#CC79A7",
    "wrong": "#882255",
    # Classes of a classifier are none of these meanings, so they have colours of their own (Paul Tol's muted).
    "class0": "#332288",
    "class1": "#DDCC77",
    "class2": "#44AA99",
    "class3": "#882255",
    "class4": "#88CCEE",
    "class5": "#117733",
    "class6": "#CC6677",
    "class7": "#999933",
    "class8": "#AA4499",
    "class9": "#661100",
}
"""Role to colour on white paper. A text in the colour of an area has the role of the area with "-text"."""


def colour(role: str) -> str:
    """Return the colour of a role on white paper as ``#RRGGBB``.

    ``weights/50`` is half way to white, ``weights-text`` is dark enough to read.
    """
    name, _, strength = role.partition("/")
    base, _, is_text = name.partition("-")
    channels = [round(0.7 * channel) if is_text else channel for channel in _channels(COLOURS[base])]
    share = int(strength) / 100 if strength else 1.0
    return "#" + "".join(f"{round(255 + (channel - 255) * share):02X}" for channel in channels)


def _channels(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


def tint(colour: str, strength: float) -> tuple[float, float, float]:
    """Mix ``#RRGGBB`` with white, for matplotlib: strength 0 is white, 1 the colour itself."""
    red, green, blue = (1 - strength * (1 - channel / 255) for channel in _channels(colour))
    return red, green, blue


# The same colours by name, for figures that matplotlib draws.
INK, GREY, FAINT = COLOURS["ink"], COLOURS["grey"], COLOURS["faint"]
WEIGHTS, GRADIENTS = COLOURS["weights"], COLOURS["gradients"]
OPTIMIZER, ACTIVATIONS = COLOURS["optimizer"], COLOURS["activations"]
FRESH, STALE = COLOURS["fresh"], COLOURS["stale"]
LOSS, SCALE, WRONG = COLOURS["loss"], COLOURS["scale"], COLOURS["wrong"]


_HEX = re.compile(r"#[0-9a-fA-F]{6}\b")
_BLACK = "#000000"  # the fill of what names none
_DARKEST, _LIGHTEST = 0.118, 0.95  # of a dark page: its paper, and what is black on white


def themed_svg(svg: str) -> str:
    """Return the SVG with each of its colours as a variable, which has the lightness turned round on a dark page.

    An ``<img>`` that holds it follows the ``color-scheme`` of its element, else what the reader's system prefers.
    """
    colours = sorted({colour.lower() for colour in _HEX.findall(svg)})
    light = "".join(f"--{colour[1:]}:{colour};" for colour in colours)
    dark = "".join(f"--{colour[1:]}:{_on_dark(colour)};" for colour in colours)
    style = f"<style>svg{{{light}}}@media (prefers-color-scheme:dark){{svg{{fill:{_on_dark(_BLACK)};{dark}}}}}</style>"
    named = _HEX.sub(lambda found: f"var(--{found[0][1:].lower()})", svg)
    head = named.index(">", named.index("<svg")) + 1
    return named[:head] + style + named[head:]


def _on_dark(colour: str) -> str:
    """Return the colour of the same hue for dark paper."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*(channel / 255 for channel in _channels(colour)))
    turned = _LIGHTEST - lightness * (_LIGHTEST - _DARKEST)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in colorsys.hls_to_rgb(hue, turned, saturation))

"""One meaning for each colour through the whole series (the Okabe-Ito eight), a few greys, and colours of classes.

A role is the name of a meaning. ``colours.json`` has its colour on white paper and on black; ``front/palette.js`` makes
the browser's themes of them. "fresh" always has a dark outline, as yellow on white is too pale by itself; "reused" is
always hatched or dashed too.
"""

from __future__ import annotations

import colorsys
import json
import re
from pathlib import Path

_THEMES: dict[str, list[str]] = json.loads(Path(__file__).with_name("colours.json").read_text("utf-8"))
COLOURS = {role: white for role, (white, _) in _THEMES.items()}
"""Role to colour on white paper. A text in the colour of an area has the role of the area with "-text"."""


def colour(role: str) -> str:
    """Return the colour of a role on white paper as ``#RRGGBB``, matplotlib's "none" of no role.

    ``weights/50`` is half way to white, ``weights-text`` is dark enough to read.
    """
    if not role:
        return "none"
    name, _, strength = role.partition("/")
    base, _, is_text = name.partition("-")
    channels = [round(0.7 * channel) if is_text else channel for channel in _channels(COLOURS[base])]
    share = int(strength) / 100 if strength else 1.0
    return "#" + "".join(f"{round(255 + (channel - 255) * share):02X}" for channel in channels)


def _channels(colour: str) -> list[int]:
    return [int(colour[start : start + 2], 16) for start in (1, 3, 5)]


def tint(colour: str, strength: float) -> tuple[float, float, float]:
    """Mix ``#RRGGBB`` with white, for matplotlib: strength 0 is white, 1 the colour itself."""
    red, green, blue = (1 - strength * (1 - channel / 255) for channel in _channels(colour))
    return red, green, blue


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
    named = _HEX.sub(lambda match: f"var(--{match[0][1:].lower()})", svg)
    head = named.index(">", named.index("<svg")) + 1
    return named[:head] + style + named[head:]


def _on_dark(colour: str) -> str:
    hue, lightness, saturation = colorsys.rgb_to_hls(*(channel / 255 for channel in _channels(colour)))
    turned = _LIGHTEST - lightness * (_LIGHTEST - _DARKEST)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in colorsys.hls_to_rgb(hue, turned, saturation))

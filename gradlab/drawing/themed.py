"""A picture as SVG that is light on a light page and dark on a dark one: its colours are looked up by theme."""

from __future__ import annotations

import colorsys
import re

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
    hue, lightness, saturation = colorsys.rgb_to_hls(*(int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)))
    turned = _LIGHTEST - lightness * (_LIGHTEST - _DARKEST)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in colorsys.hls_to_rgb(hue, turned, saturation))

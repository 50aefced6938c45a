"""Colours by role: the eight of Okabe and Ito, each with one meaning in all notebooks, one for "wrong", and greys.

``colours.json`` has each role's colours on white and on dark paper, from which ``front/palette.js`` makes the browser's
themes. "fresh" has a dark outline, because yellow on white is too pale; arrows with the role "reused" are hatched.
"""

from __future__ import annotations

import colorsys
import json
import re
from pathlib import Path

_THEMES: dict[str, list[str]] = json.loads(Path(__file__).with_name("colours.json").read_text("utf-8"))
COLOURS = {role: white for role, (white, _) in _THEMES.items()}
"""Role -> colour on white paper; the suffix "-text" makes a colour darker, for labels of an area with that role."""


def colour(role: str) -> str:
    """Return the colour of a role on white paper as ``#RRGGBB``, or matplotlib's "none" if ``role`` is "".

    ``weights/50`` is the colour halfway between ``weights`` and white; ``weights-text`` is dark enough for text.
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
    """Return ``colour`` (``#RRGGBB``) mixed with white, as RGB from 0 to 1; a ``strength`` of 0 gives white."""
    red, green, blue = (1 - strength * (1 - channel / 255) for channel in _channels(colour))
    return red, green, blue


_HEX = re.compile(r"#[0-9a-fA-F]{6}\b")
_BLACK = "#000000"  # SVG's default fill
_DARKEST, _LIGHTEST = 0.118, 0.95  # lightness that white and black have on a dark page


def themed_svg(svg: str) -> str:
    """Return the SVG with its colours as CSS variables, whose lightness is inverted on a dark page.

    In an ``<img>``, the SVG follows the element's ``color-scheme`` or, if unset, the preference of the reader's system.
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

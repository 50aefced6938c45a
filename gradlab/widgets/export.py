"""What is shown and kept of a lab: its live view, with the still picture and the words for where there is none."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as widgets

from ..formatting import png_img
from ..front import FrontEnd

_BARS = 110  # CSS pixels that the controls of a lab take above what its still picture shows


class LiveView:
    """The widgets of a lab: what paints it in the browser, and the still picture that stands there until it does."""

    def __init__(self, entry: str, answer: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
        """Make them; ``answer`` takes a request of the browser."""
        self.front = FrontEnd(entry, answer)
        self._still = widgets.HTML()
        self.widget = widgets.VBox([self._still, self.front])

    def show_still(self, png: bytes, words: str) -> None:
        """Set the picture that is seen where the widget's JavaScript does not load, and what to do then."""
        help_ = (
            "This is a still picture: the live lab has not loaded. If it stays, install anywidget where Jupyter "
            "runs (<code>pip install anywidget</code>) and reload this page. <code>lab.run(updates=20)</code> works "
            "meanwhile."
        )
        room = f"min-height: {_pixels(png, 20) + _BARS}px"  # of the lab, so that nothing jumps when it comes
        self._still.value = (
            f'<div data-gradlab-still="{self.front.lab_id}" style="{room}">{png_img(png, words, _pixels(png, 16))}'
            f"<p>{html.escape(words)}</p><p>{help_}</p></div>"
        )


def mimebundle(view: LiveView, png: bytes, alt: str, words: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the rich output of a lab: its live view, with a picture and words for where there is no kernel."""
    view.show_still(png, alt)
    data = {
        "application/vnd.jupyter.widget-view+json": {
            "version_major": 2,
            "version_minor": 0,
            "model_id": view.widget.model_id,
        },
        "image/png": base64.b64encode(png).decode(),
        "text/plain": words,
    }
    # That it is a still of something live is told on a page made of the notebook (commands/page.html.j2).
    return data, {"image/png": {"width": _pixels(png, 16), "alt": alt, "live": True}}


def _pixels(png: bytes, at: int) -> int:
    """Return the width (bytes 16 to 20 of a PNG) or the height in CSS pixels; it is drawn at twice their density."""
    return int.from_bytes(png[at : at + 4], "big") // 2

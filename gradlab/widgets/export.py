"""What is shown and kept of a lab: its live view, with the still picture and the words for where there is none."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as widgets

from ..formatting import png_img
from ..front import FrontEnd

_WIDE = 800  # CSS pixels of the still picture


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
        self._still.value = (
            f'<div data-gradlab-still="{self.front.lab_id}">{png_img(png, words, _WIDE)}'
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
    # The picture is drawn at twice the density of the page; a PNG holds its width in bytes 16 to 20.
    # That it is a still of something live is told on a page made of the notebook (commands/page.html.j2).
    return data, {"image/png": {"width": int.from_bytes(png[16:20], "big") // 2, "alt": alt, "live": True}}

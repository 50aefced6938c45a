"""The style sheet of the widgets, as an element that travels with them."""

from __future__ import annotations

from importlib.resources import files


def style_sheet() -> str:
    """Return the ``<style>`` element; each Lab carries its own, so that it looks right wherever it is shown."""
    css = files("gradlab.widgets").joinpath("lab.css").read_text(encoding="utf-8")
    return f"<style>{css}</style>"

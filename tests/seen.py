"""What a reader sees of a panel or of widgets: words, lines, buttons, pictures; through matplotlib and ipywidgets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar

import ipywidgets as widgets
from matplotlib.text import Text

from gradlab.views import Canvas
from gradlab.views.label import Label

W = TypeVar("W", bound=widgets.Widget)


def texts(panel: Canvas[Any]) -> list[Text]:
    """All texts of a panel that are not empty, those of the axes' ticks included."""
    return [text for text in panel.figure.findobj(Text) if text.get_visible() and text.get_text()]


def labels(panel: Canvas[Any], pattern: str = ".*") -> list[Label]:
    """The panel's own labels whose whole text matches, in the order in which they were made."""
    found = [text for text in texts(panel) if isinstance(text, Label)]
    return [label for label in found if re.fullmatch(pattern, label.get_text())]


def words(panel: Canvas[Any], pattern: str = ".*") -> list[str]:
    """What these labels say."""
    return [label.get_text() for label in labels(panel, pattern)]


def ink(label: Label) -> tuple[float, float]:
    """Where a label begins and ends, in CSS pixels from the left of the panel (at two pixels each)."""
    x = label.get_transform().transform(label.get_position())[0] / 2
    wide = label.wide() / 2
    start = float(x) - {"left": 0.0, "center": wide / 2, "right": wide}[label.get_horizontalalignment()]
    return start, start + wide


def inside(widget: widgets.Widget, kind: type[W]) -> list[W]:
    """The widgets of a kind in another, from top to bottom."""

    def all_of(one: widgets.Widget) -> Iterator[widgets.Widget]:
        yield one
        for child in getattr(one, "children", ()):
            yield from all_of(child)

    return [one for one in all_of(widget) if isinstance(one, kind)]


def button(widget: widgets.Widget, text: str) -> Any:
    """The one button (or toggle) with this text on it."""
    (found,) = [one for one in inside(widget, widgets.DOMWidget) if getattr(one, "description", None) == text]
    return found


def html(widget: widgets.Widget) -> str:
    """The HTML in a widget, the style sheet left out."""
    return "\n".join(one.value for one in inside(widget, widgets.HTML) if not one.value.startswith("<style>"))


def pictures(widget: widgets.Widget) -> list[bytes]:
    """The pictures in a widget."""
    return [bytes(image.value) for image in inside(widget, widgets.Image)]

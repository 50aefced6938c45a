"""What a reader sees of widgets: buttons and words, through ipywidgets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import ipywidgets as widgets

W = TypeVar("W", bound=widgets.Widget)


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

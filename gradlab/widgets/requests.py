"""What a browser asks, checked: its messages are plain JSON and may hold anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

_NARROWEST, _WIDEST, _LOWEST, _HIGHEST = 260, 1300, 200, 420  # CSS pixels of a panel
_MOST_WORDS = 300  # letters of what is said of a bad request


class RequestError(ValueError):
    """A request that cannot be done; its words are for the learner."""


def read_number(request: Mapping[str, Any], name: str) -> float:
    """Return a finite number of a request."""
    value = request.get(name)
    try:
        found = math.nan if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)
    except OverflowError:  # an int that no float can hold
        found = math.inf
    if not math.isfinite(found):
        raise RequestError(f"{name} must be a finite number, got {value!r}")
    return found


def read_whole(request: Mapping[str, Any], name: str) -> int:
    """Return a whole number of a request."""
    value = read_number(request, name)
    if value != int(value):
        raise RequestError(f"{name} must be a whole number, got {value!r}")
    return int(value)


def read_string(request: Mapping[str, Any], name: str) -> str:
    """Return a text of a request; half of a pair of surrogates, which no message can carry back, becomes "?"."""
    value = request.get(name)
    if not isinstance(value, str):
        raise RequestError(f"{name} must be a text, got {value!r}")
    return value.encode("utf-8", "replace").decode("utf-8")


class PanelSize(NamedTuple):
    """The CSS pixels of each panel, and the width of the last one, which may span two columns."""

    width: int
    height: int
    last: int

    def of(self, number: int, count: int) -> tuple[int, int]:
        """Return the width and height of panel ``number``, counted from 0, of so many."""
        return self.last if number == count - 1 else self.width, self.height


def panel_size(request: Mapping[str, Any]) -> PanelSize:
    """Return the size that panels have in the browser, kept within what can be laid out."""
    width, height = _wide(request, "width"), min(max(read_whole(request, "height"), _LOWEST), _HIGHEST)
    return PanelSize(width, height, _wide(request, "last") if "last" in request else width)


def _wide(request: Mapping[str, Any], name: str) -> int:
    return min(max(read_whole(request, name), _NARROWEST), _WIDEST)


def cut_words(words: str) -> str:
    """Return words that may quote anything: not too many, and nothing that no message can carry."""
    plain = words.encode("utf-8", "replace").decode("utf-8")
    return plain if len(plain) <= _MOST_WORDS else f"{plain[: _MOST_WORDS - 60]} ..."

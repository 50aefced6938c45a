"""From a message of the browser to the reply: its fields are checked, one function does it, and frames show the result.

Messages are plain JSON and may hold anything; ``front/README.md`` lists them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .instrument import Instrument
    from .lab_model import LabModel

_NARROWEST, _WIDEST, _LOWEST, _HIGHEST = 260, 1300, 200, 420  # CSS pixels of a panel
_MOST_WORDS = 300  # letters of what is said of a bad request

Frame = dict[str, Any]
Reply = dict[str, Any]


class RequestError(ValueError):
    """A request that cannot be done; its words are for the learner."""


@dataclass(frozen=True)
class Request:
    """What a browser asks to be done, and with what: RequestError for a field that is not what is read."""

    fields: Mapping[str, Any]

    def get(self, name: str) -> Any:
        """Return a field as it came, None where there is none."""
        return self.fields.get(name)

    def number(self, name: str) -> float:
        """Return a finite number."""
        value = self.get(name)
        try:
            number = math.nan if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)
        except OverflowError:  # an int that no float can hold
            number = math.inf
        if not math.isfinite(number):
            raise RequestError(f"{name} must be a finite number, got {value!r}")
        return number

    def whole(self, name: str) -> int:
        """Return a whole number."""
        value = self.number(name)
        if value != int(value):
            raise RequestError(f"{name} must be a whole number, got {value!r}")
        return int(value)

    def text(self, name: str) -> str:
        """Return a text; half of a pair of surrogates, which no message can carry back, becomes "?"."""
        value = self.get(name)
        if not isinstance(value, str):
            raise RequestError(f"{name} must be a text, got {value!r}")
        return value.encode("utf-8", "replace").decode("utf-8")

    def kind(self, kinds: Iterable[str]) -> str:
        """Return which of these is to be done."""
        do = self.get("do")
        if not isinstance(do, str) or do not in kinds:
            raise RequestError(f"do must be one of {', '.join(kinds)}, got {do!r}")
        return do


def reply_to(message: object, source: LabModel | Instrument, act: Callable[[Request], Iterable[Frame] | None]) -> Reply:
    """Do what a message asks by ``act``, return the reply with its frames or one of ``source``; it raises nothing."""
    start = time.perf_counter()
    request = Request(message if isinstance(message, Mapping) else {})
    frames: list[Frame] = []
    try:
        frames.extend(act(request) or ())
    except (Exception, KeyboardInterrupt) as error:
        source.fail(error)
        frames.append(source.frame())
    frames = frames or [source.frame()]
    work = round((time.perf_counter() - start) * 1000, 1)
    return {"n": request.get("n"), "client": request.get("client"), "work": work, "frames": frames}


def cut_words(words: str) -> str:
    """Return words that may quote anything: not too many, and nothing that no message can carry."""
    plain = words.encode("utf-8", "replace").decode("utf-8")
    return plain if len(plain) <= _MOST_WORDS else f"{plain[: _MOST_WORDS - 60]} ..."

"""From a message of the browser to the reply: read once, done by the one function for it, and told in frames.

Messages are plain JSON and may hold anything; ``front/README.md`` lists them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from .._process import main_thread

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


Actions = Mapping[str, Callable[[Request], Iterable[Frame] | None]]
"""What may be asked for, and what does it; one that makes frames of its own hands them on as they are made."""


Fail = Callable[[Exception | KeyboardInterrupt], None]


def reply_to(message: Mapping[str, Any], actions: Actions, fail: Fail, frame: Callable[[], Frame]) -> Reply:
    """Do what a message asks, and return the reply with a frame at least; ``fail`` says in words what went wrong."""
    began = time.perf_counter()
    request = Request(message if isinstance(message, Mapping) else {})
    frames: list[Frame] = []
    went_well = try_to(lambda: frames.extend(_act(request, actions)), fail)
    if not (frames and went_well):
        frames.append(frame())
    work = round((time.perf_counter() - began) * 1000, 1)
    return {"n": request.get("n"), "client": request.get("client"), "work": work, "frames": frames}


def try_to(action: Callable[[], object], fail: Fail) -> bool:
    """Do something for the learner, and return whether it went well; ``fail`` says in words what did not."""
    try:
        action()
    except (Exception, KeyboardInterrupt) as error:
        main_thread.interrupted |= isinstance(error, KeyboardInterrupt)
        fail(error)
        return False
    return True


def _act(request: Request, actions: Actions) -> Iterable[Frame]:
    do = request.get("do")
    if not isinstance(do, str) or do not in actions:
        raise RequestError(f"do must be one of {', '.join(actions)}, got {do!r}")
    return actions[do](request) or ()


def cut_words(words: str) -> str:
    """Return words that may quote anything: not too many, and nothing that no message can carry."""
    plain = words.encode("utf-8", "replace").decode("utf-8")
    return plain if len(plain) <= _MOST_WORDS else f"{plain[: _MOST_WORDS - 60]} ..."

"""Requests from the browser, and the replies to them, whose frames show what has changed in a lab.

A frame holds the changes since the previous frame; a costly panel is redrawn only in some frames.
``gradlab/front/README.md`` lists the fields of requests and frames. Check the fields of a request before use.
"""

from __future__ import annotations

import difflib
import math
import re
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from ..drawing import Drawing, Encoder, draw
from ..scenes import PanelName, RunScenes, find_oom

if TYPE_CHECKING:
    from .instrument import Instrument
    from .lab_model import LabModel

_MAX_MESSAGE_LENGTH = 300

Frame = dict[str, Any]
Reply = dict[str, Any]


class RequestError(ValueError):
    """The error for a request that cannot be carried out, with a message that the learner sees."""


@dataclass(frozen=True)
class Request:
    """A request from the browser. All methods except ``get`` raise RequestError if a field is missing or invalid."""

    fields: Mapping[str, Any]

    def get(self, name: str) -> Any:
        """Return the field ``name`` without a check, or None if the field is missing."""
        return self.fields.get(name)

    def number(self, name: str) -> float:
        """Return the field ``name``, which must be a finite number, as a float."""
        value = self.get(name)
        try:
            number = math.nan if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)
        except OverflowError:  # an int too large for a float
            number = math.inf
        if not math.isfinite(number):
            raise RequestError(f"{name} must be a finite number, got {value!r}")
        return number

    def whole(self, name: str) -> int:
        """Return the field ``name``, which must be a whole number, as an int."""
        value = self.number(name)
        if value != int(value):
            raise RequestError(f"{name} must be a whole number, got {value!r}")
        return int(value)

    def text(self, name: str) -> str:
        """Return the field ``name``, which must be a string, with "?" for unpaired surrogates (they cannot be sent)."""
        value = self.get(name)
        if not isinstance(value, str):
            raise RequestError(f"{name} must be a string, got {value!r}")
        return value.encode("utf-8", "replace").decode("utf-8")

    def kind(self, kinds: Iterable[str]) -> str:
        """Return the field ``do``, the kind of request, which must be one of ``kinds``."""
        do = self.get("do")
        if not isinstance(do, str) or do not in kinds:
            raise RequestError(f"do must be one of {', '.join(kinds)}, got {do!r}")
        return do


def reply_to(message: object, source: LabModel | Instrument, act: Callable[[Request], Iterable[Frame] | None]) -> Reply:
    """Return the reply to a message: the frames from ``act`` and, if it fails or gives none, one from ``source``."""
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


def shorten_message(text: str) -> str:
    """Return ``text`` with "?" for unpaired surrogates, cut off if it is longer than ``_MAX_MESSAGE_LENGTH``."""
    plain = text.encode("utf-8", "replace").decode("utf-8")
    return plain if len(plain) <= _MAX_MESSAGE_LENGTH else f"{plain[: _MAX_MESSAGE_LENGTH - 60]} ..."


@dataclass(frozen=True)
class Pace:
    """The minimum pauses between two drawings of a panel in playback; the first panel has none and is always drawn."""

    share: float  # pause in ms for each ms of processor time that drawing the panel takes
    rests: Mapping[PanelName, float]  # panel -> least pause in ms, however cheap its drawing is
    usual_rest: float  # pause of a panel not in ``rests``, such as memory, whose Ledger slows training down
    panel_words: float = 0.0  # pause between two changes of the panels' text alternatives
    always: frozenset[PanelName] = frozenset()  # panels that are drawn in every frame, whatever they cost


# Lessons are about these panels: at 60 frames a second, FAST draws them in every second frame, and others in every 7th.
_RESTS = {PanelName.GRADIENT: 30.0, PanelName.LANDSCAPE: 30.0, PanelName.HELD_OUT: 30.0}
SLOW = Pace(2.0, {}, 0.0, always=frozenset({PanelName.GRADIENT, PanelName.LANDSCAPE}))
"""For playback of single statements, and of updates so slow that a reader can follow each call."""
FAST = Pace(10.0, _RESTS, 105.0, 500.0)
FULL = Pace(25.0, _RESTS, 150.0, 500.0)
"""For full speed, where drawing slows the training down."""
RECORDED = Pace(0.0, {PanelName.GRADIENT: 0.0, PanelName.MEMORY: 400.0}, 60.0)
_SLOW_FRAME_MS = 99.0  # frames shown for at least this time (up to 10 updates a second) have the pace SLOW
_COSTS_PER_PANEL = 8


def live_pace(every: float, *, full_speed: bool) -> Pace:
    """Return the Pace for frames that are shown for ``every`` ms each, or for training at full speed."""
    return FULL if full_speed else SLOW if every >= _SLOW_FRAME_MS else FAST


class PanelDrawings:
    """The panels of a run as Drawings, each redrawn as often as its cost allows."""

    def __init__(self, scenes: RunScenes) -> None:
        self.scenes = scenes
        self.pace = FAST
        self._drawings: dict[PanelName, Drawing] = {}
        self._due: dict[PanelName, float] = {}
        # The cost of drawing a panel is the shortest of the newest times, because other work lengthens some times.
        self._costs: defaultdict[PanelName, deque[float]] = defaultdict(lambda: deque(maxlen=_COSTS_PER_PANEL))
        self._words_due = 0.0

    def draw(self, names: Sequence[PanelName], now: float, *, only_due: bool = False) -> dict[PanelName, Drawing]:
        """Return the Drawings of the panels ``names`` at ``now`` ms of playback.

        If ``only_due`` is True, panels that are not due keep their last Drawing, except those that every frame redraws.
        """
        keep_words = only_due and self.pace.panel_words > 0 and now < self._words_due
        if not keep_words:
            self._words_due = now + self.pace.panel_words
        for name in names:
            old = self._drawings.get(name)
            waits = name != names[0] and name not in self.pace.always and now < self._due.get(name, 0.0)
            if only_due and old is not None and waits:
                continue
            began = time.thread_time()
            drawing = self._draw(name)
            self._drawings[name] = replace(drawing, words=old.words) if keep_words and old is not None else drawing
            self._costs[name].append((time.thread_time() - began) * 1000)
            rest = self.pace.rests.get(name, self.pace.usual_rest)
            self._due[name] = now + max(self.pace.share * min(self._costs[name]), rest)
        return {name: self._drawings[name] for name in names}

    def due(self, name: PanelName, now: float) -> bool:
        """Return whether the panel ``name`` is due for a new drawing at ``now`` ms of playback."""
        return now >= self._due.get(name, 0.0)

    def draw_next(self, name: PanelName) -> None:
        """Make the panel ``name`` due, so that the next frame redraws the panel."""
        self._due.pop(name, None)

    def _draw(self, name: PanelName) -> Drawing:
        try:
            scene = self.scenes.scene(name)
        except Exception as error:  # some pictures need a forward pass of the learner's model, which can fail
            old = self._drawings.get(name)
            if old and find_oom(error) is not None:
                return old
            text = f"This picture needs a forward pass, which ended in {type(error).__name__}: {error}"
            return Drawing(str(name), notice=shorten_message(text), words=shorten_message(text))
        return draw(scene)


_NOTHING = object()
_COMMENTED_ZERO_GRAD = re.compile(r"^( *)# (\w+\.zero_grad\(.*\))$", re.MULTILINE)
_LEXER, _FORMATTER = PythonLexer(stripnl=False, ensurenl=False), HtmlFormatter(nowrap=True)


class FrameWriter:
    """A writer of frames, each of which contains the changes since the previous frame."""

    def __init__(self) -> None:
        self._number = 0
        self._newest_lock = threading.Lock()
        self._drawings: Mapping[Any, Drawing] = {}
        self._sent: Frame = {}
        self._values: dict[str, Any] = {}
        self._encoders: dict[str, Encoder] = {}
        self._whole = True

    def start_over(self) -> None:
        """Make the next frame a whole frame, which contains all fields."""
        self._whole = True

    def tell_again(self, *keys: str) -> None:
        """Make the next frame contain ``keys``, which are fields or names in ``values``, even if they are unchanged."""
        for key in keys:
            self._sent.pop(key, None)
            self._values.pop(key, None)

    def newest(self) -> Frame | None:
        """Return the newest frame as a whole frame, or None before the first. Any thread may call this method."""
        with self._newest_lock:
            if not self._number:
                return None
            sent, drawings = {**self._sent, "values": dict(self._values)}, self._drawings
            panels = {str(name): Encoder().encode(drawing) for name, drawing in drawings.items()}
            return {"f": self._number, "whole": True, **sent, "panels": panels}

    def write(self, drawings: Mapping[Any, Drawing], **now: Any) -> Frame:
        """Return the next frame, with the changes in ``drawings`` and in ``now``, which contains all other fields."""
        with self._newest_lock:
            self._drawings = drawings
            self._number += 1
            frame: Frame = {"f": self._number}
            if self._whole:
                frame["whole"] = True
                self._sent, self._values, self._encoders, self._whole = {}, {}, {}, False
            values = now.pop("values")
            for key, value in {**now, "order": list(map(str, drawings))}.items():
                if key not in self._sent or self._sent[key] != value:
                    frame[key] = self._sent[key] = value
            changed = {name: value for name, value in values.items() if self._values.get(name, _NOTHING) != value}
            if changed:
                frame["values"] = changed
                self._values.update(changed)
            # The encoder of a panel that is no longer shown is dropped: if the panel comes back, it is sent whole.
            earlier, self._encoders, panels = self._encoders, {}, {}
            for name, drawing in drawings.items():
                encoder = self._encoders[name] = earlier.get(name) or Encoder()
                if change := encoder.change(drawing):
                    panels[str(name)] = change
            if panels:
                frame["panels"] = panels
            return frame


@lru_cache(maxsize=64)
def coloured(source: str) -> tuple[str, ...]:
    """Return the lines of ``source`` as highlighted HTML, and close all tags at the end of each line.

    A line that is a commented-out call to ``zero_grad`` is shown as code that is struck through.
    """
    commented = {index for index, line in enumerate(source.split("\n")) if _COMMENTED_ZERO_GRAD.match(line)}
    html = highlight(_COMMENTED_ZERO_GRAD.sub(r"\1\2", source), _LEXER, _FORMATTER)
    lines = re.sub(r'(\((?=</span>)|(?<=<span class="o">)\.)', r"\1<wbr>", html).split("\n")
    for index in commented:  # "# " is only hidden, so that copied text and screen readers still have it
        code = lines[index].lstrip()
        lines[index] = f'{lines[index][: -len(code)]}<span class="gl-hidden"># </span><s>{code}</s>'
    count = len(source.splitlines())
    return tuple((lines + [""] * count)[:count])


def changed_lines(old: str, new: str) -> list[int]:
    """Return the numbers, from 1, of the lines of ``new`` that differ from ``old``."""
    matcher = difflib.SequenceMatcher(a=old.splitlines(), b=new.splitlines(), autojunk=False)
    return [n + 1 for tag, _, _, first, last in matcher.get_opcodes() if tag != "equal" for n in range(first, last)]

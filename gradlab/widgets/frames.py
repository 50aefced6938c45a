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
    """Raised for a request that cannot be carried out; the message is shown to the learner."""


@dataclass(frozen=True)
class Request:
    """A browser's request; all methods except ``get`` raise RequestError for a missing or invalid field."""

    fields: Mapping[str, Any]

    def get(self, name: str) -> Any:
        """Return a field unchecked, or None if it is missing."""
        return self.fields.get(name)

    def number(self, name: str) -> float:
        """Return a field that must be a finite number, as a float."""
        value = self.get(name)
        try:
            number = math.nan if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)
        except OverflowError:  # an int too large for a float
            number = math.inf
        if not math.isfinite(number):
            raise RequestError(f"{name} must be a finite number, got {value!r}")
        return number

    def whole(self, name: str) -> int:
        """Return a field that must be a whole number, as an int."""
        value = self.number(name)
        if value != int(value):
            raise RequestError(f"{name} must be a whole number, got {value!r}")
        return int(value)

    def text(self, name: str) -> str:
        """Return a field that must be a string; an unpaired surrogate, which cannot be sent back, becomes "?"."""
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
    """Return the reply to a message: the frames of ``act``. If it fails or gives none, add a frame of ``source``."""
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
    """Return ``text`` with "?" for unpaired surrogates, cut off if it is longer than a message may be."""
    plain = text.encode("utf-8", "replace").decode("utf-8")
    return plain if len(plain) <= _MAX_MESSAGE_LENGTH else f"{plain[: _MAX_MESSAGE_LENGTH - 60]} ..."


@dataclass(frozen=True)
class Pace:
    """Minimum pauses between two drawings of a panel in playback, in ms; the first panel is drawn in every frame."""

    share: float  # pause for each ms of processor time that drawing the panel takes
    rests: Mapping[PanelName, float]  # pause of these panels, however cheap their drawing is
    usual_rest: float  # pause of all other panels, such as memory, whose Ledger also slows down training
    panel_words: float = 0.0  # pause between two changes of the panels' text alternatives
    always: frozenset[PanelName] = frozenset()  # panels that are drawn in every frame, whatever they cost


# At 60 frames a second, FAST draws these panels, the lessons' subject, in every second frame, others in every seventh.
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
    """Return the pace of a lab that plays frames of ``every`` ms each."""
    return FULL if full_speed else SLOW if every >= _SLOW_FRAME_MS else FAST


class PanelDrawings:
    """The panels of a run as Drawings, each redrawn as often as its cost allows."""

    def __init__(self, scenes: RunScenes) -> None:
        self.scenes = scenes
        self.pace = FAST
        self._drawings: dict[PanelName, Drawing] = {}
        self._due: dict[PanelName, float] = {}
        # The cost of a drawing is the shortest of its newest times, because other work lengthens some of them.
        self._costs: defaultdict[PanelName, deque[float]] = defaultdict(lambda: deque(maxlen=_COSTS_PER_PANEL))
        self._words_due = 0.0

    def draw(self, names: Sequence[PanelName], now: float, *, only_due: bool = False) -> dict[PanelName, Drawing]:
        """Return these panels' Drawings at ``now`` ms of playback.

        With ``only_due``, redraw only the first panel and those that are due; the others keep their last Drawing.
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
        """Return whether the pause of a panel has passed at ``now`` ms of playback."""
        return now >= self._due.get(name, 0.0)

    def draw_next(self, name: PanelName) -> None:
        """Make a panel due, so that the next frame draws it."""
        self._due.pop(name, None)

    def _draw(self, name: PanelName) -> Drawing:
        try:
            scene = self.scenes.scene(name)
        except Exception as error:  # some pictures need a forward pass of the learner's model
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
    """Writes frames, each as the changes since the previous frame."""

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
        """Make the next frame contain these fields, or names in ``values``, even if they have not changed."""
        for key in keys:
            self._sent.pop(key, None)
            self._values.pop(key, None)

    def newest(self) -> Frame | None:
        """Return the newest frame as a whole frame, or None before the first. Any thread may call it."""
        with self._newest_lock:
            if not self._number:
                return None
            sent, drawings = {**self._sent, "values": dict(self._values)}, self._drawings
            panels = {str(name): Encoder().encode(drawing) for name, drawing in drawings.items()}
            return {"f": self._number, "whole": True, **sent, "panels": panels}

    def write(self, drawings: Mapping[Any, Drawing], **now: Any) -> Frame:
        """Return the next frame: the changes of the Drawings and of ``now``, the values of all other fields."""
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
    """Return each line as highlighted HTML; the tags of a token that spans lines are closed in each line.

    A line that is a commented-out call to ``zero_grad`` is shown as code that is struck through.
    """
    commented = {index for index, line in enumerate(source.split("\n")) if _COMMENTED_ZERO_GRAD.match(line)}
    html = highlight(_COMMENTED_ZERO_GRAD.sub(r"\1\2", source), _LEXER, _FORMATTER)
    lines = re.sub(r'(\((?=</span>)|(?<=<span class="o">)\.)', r"\1<wbr>", html).split("\n")
    for index in commented:  # "# " is only hidden: copied text and screen readers still have it
        code = lines[index].lstrip()
        lines[index] = f'{lines[index][: -len(code)]}<span class="gl-hidden"># </span><s>{code}</s>'
    count = len(source.splitlines())
    return tuple((lines + [""] * count)[:count])


def changed_lines(old: str, new: str) -> list[int]:
    """Return the numbers, from 1, of the lines of ``new`` that differ from ``old``."""
    matcher = difflib.SequenceMatcher(a=old.splitlines(), b=new.splitlines(), autojunk=False)
    return [n + 1 for tag, _, _, first, last in matcher.get_opcodes() if tag != "equal" for n in range(first, last)]

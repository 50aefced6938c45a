"""Run a learner's function so that whatever it does ends in words: exceptions, exits, loops without an end."""

from __future__ import annotations

import functools
import linecache
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import FrameType, FunctionType, MethodType
from typing import Any

_LOOK = 0.1  # seconds between two looks at the clock, and between two attempts to stop what catches everything
_SOON = 0.001  # seconds until the next look where what runs should not be cut off ...
_HELD = 100  # ... and so many looks it is given, because a loop may do nothing else
_POLITE = 5  # so many attempts may be caught; from the next one on the line that catches it raises as well
_PATIENCE = 6  # a function that waits instead of working gets so many times as long
_LAYERS = 20  # of decorators; one that wraps itself has no end
_OURS = str(Path(__file__).parents[2]) + os.sep


class TroubleError(Exception):
    """What went wrong inside a learner's function, in a sentence without its full stop."""


class _TooLong(BaseException):
    """Raised in a function that does not end; no ``except Exception`` of its own catches it."""


def guarded(work: Callable[[], object], answer: object, seconds: float) -> object:
    """Return what ``work()`` does, which calls ``answer``; raise TroubleError for everything that happens instead.

    Ctrl-C stays what it is. An answer that is still running after so many seconds of work is stopped.
    """
    process = os.getpid()
    try:
        try:
            with _Limit(answer, seconds):
                return work()
        finally:
            if os.getpid() != process:
                os._exit(1)  # the answer has forked: one process goes on with the notebook, not two
    except (TroubleError, KeyboardInterrupt):  # an exercise has found the words itself, or Ctrl-C
        raise
    except _TooLong as stopped:
        raise TroubleError(
            f"It did not end within {seconds:g} seconds{_line(answer, stopped)}: is there a loop without an end"
        ) from None
    except BaseException as error:
        raise TroubleError(f"It raises {type(error).__name__}: {_message(error)}{_line(answer, error)}") from None


class _Limit:
    """Raises _TooLong in the learner's code after so many seconds of work, and again until it has ended.

    Work is this thread's time of the processor: on a busy machine a right answer takes longer by the clock. A timer's
    signal interrupts the main thread, where cells run, and its handler decides. It raises only while the learner's own
    code runs: what an exercise has put around it (a ledger, the doctor) takes itself off in peace.

    Without a limit: another thread than the main one (a button's callback in a subshell of the kernel), Windows (it has
    no such timer), and a single call into C that never looks for signals, such as ``sum(iter(int, 1))``. A wait, a
    regular expression and arithmetic on huge numbers do look for them.
    """

    def __init__(self, answer: object, seconds: float) -> None:
        self._files = _files(answer)
        self._seconds = seconds
        self._began, self._worked = time.monotonic(), time.thread_time()
        self._raised = self._held = 0
        self._possible = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()

    def __enter__(self) -> None:
        if self._possible:
            self._trace = sys.gettrace()
            self._handler = signal.signal(signal.SIGALRM, self._look)
            self._timer = signal.setitimer(signal.ITIMER_REAL, _LOOK)

    def __exit__(self, *error: object) -> None:
        if not self._possible:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._handler)
        if sys.gettrace() is not self._trace:
            sys.settrace(self._trace)
        left, interval = self._timer
        if left:  # a timer that ran before goes on
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - self._began), _SOON), interval)

    def _look(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal: raise in the learner's code if the time is up, and see to the next signal."""
        worked, passed = time.thread_time() - self._worked, time.monotonic() - self._began
        over = worked > self._seconds or passed > _PATIENCE * self._seconds
        cut = over and self._can_be_cut(frame, kindly=self._held < _HELD)
        self._held = self._held + 1 if over and not cut else 0
        signal.setitimer(signal.ITIMER_REAL, _SOON if self._held else _LOOK)
        if cut:
            self._raised += 1
            if self._raised > _POLITE:
                self._raise_at_next_line(frame)
            raise _TooLong

    def _can_be_cut(self, frame: FrameType | None, *, kindly: bool) -> bool:
        """Whether the learner's code runs, in it no import and (``kindly``) nothing of ours, no with block's end."""
        for inner in _frames(frame):
            name, code = inner.f_code.co_filename, inner.f_code.co_name
            if name in self._files:
                return True
            if name.startswith("<frozen importlib"):
                return False
            if kindly and (code in ("__enter__", "__exit__") or name.startswith(_OURS)):
                return False
        return False

    def _raise_at_next_line(self, frame: FrameType | None) -> None:
        """Let the learner's next line raise as well.

        ``while True: try: ... except: pass`` catches whatever arrives inside its try; its own except has none around.
        """

        def strike(frame: FrameType, event: str, argument: object) -> None:
            if event != "exception" and frame.f_code.co_filename in self._files:  # not inside the try once more
                raise _TooLong

        for inner in _frames(frame):
            if inner.f_code.co_filename in self._files:
                inner.f_trace = strike
        sys.settrace(strike)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Go through the frames up to ``guarded``; the cell that calls for a check is often the answer's own."""
    while frame is not None and frame.f_code is not guarded.__code__:
        yield frame
        frame = frame.f_back


def _files(answer: Any) -> set[str]:
    """Return the files (of a notebook: the cells) that a learner's code is from; none for what is our own."""
    found = set()
    for layer in islice(_layers(answer), _LAYERS):
        for part in (layer, *vars(layer if isinstance(layer, type) else type(layer)).values()):
            function = part.__func__ if isinstance(part, (staticmethod, classmethod)) else part
            if isinstance(function, FunctionType) and not function.__code__.co_filename.startswith(_OURS):
                found.add(function.__code__.co_filename)
    return found


def _layers(answer: Any) -> Iterator[Any]:
    """Go from a decorated function, a partial or a method to what it is made of."""
    while answer is not None:
        yield answer
        if isinstance(answer, functools.partial):
            answer = answer.func
        elif isinstance(answer, MethodType):
            answer = answer.__func__
        else:
            answer = getattr(answer, "__dict__", {}).get("__wrapped__")


def _message(error: BaseException) -> str:
    """Return what an exception says, shortened."""
    try:
        words = " ".join(str(error).split()) or "without a message"
    except Exception:  # one of the learner's own may fail to say anything
        words = "without a message"
    return words if len(words) <= 200 else f"{words[:197]}..."


def _line(answer: Any, error: BaseException) -> str:
    """Say in which line of the learner's code it happened."""
    files = _files(answer)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in files and frame.lineno:
            text = (frame.line or linecache.getline(frame.filename, frame.lineno)).strip()
            return f", in line {frame.lineno} of the cell: `{text}`" if text else ""
    return ""

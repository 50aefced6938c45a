"""Run a learner's function so that whatever it does ends in a word: exceptions, exits, loops without an end."""

from __future__ import annotations

import ctypes
import functools
import linecache
import os
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
_POLITE = 5  # so many attempts may be caught; the next one strikes twice
_PATIENCE = 6  # a function that waits instead of working gets so many times as long
_LAYERS = 20  # of decorators; one that wraps itself has no end
_OURS = str(Path(__file__).parents[1]) + os.sep


class TroubleError(Exception):
    """What went wrong inside a learner's function, in a sentence without its full stop."""


class _TooLong(BaseException):
    """Thrown into a function that does not end; no ``except Exception`` of its own catches it."""


def guarded(work: Callable[[], Any], answer: Any, seconds: float) -> Any:
    """Return what ``work()`` does, which calls ``answer``; raise TroubleError for everything that happens instead.

    Ctrl-C stays what it is. An answer that is still running after so many seconds of work is stopped.
    """
    limit, process = _Limit(answer, seconds), os.getpid()
    try:
        try:
            limit.begin()
            return work()
        finally:
            if os.getpid() != process:
                os._exit(1)  # the answer has forked: one process goes on with the notebook, not two
            limit.end()
    except (TroubleError, KeyboardInterrupt):  # an exercise has found the words itself, or Ctrl-C
        raise
    except _TooLong as stopped:
        limit.end()  # it may have arrived just when the limit was about to end
        raise TroubleError(
            f"It did not end within {seconds:g} seconds{_line(answer, stopped)}: is there a loop without an end"
        ) from None
    except BaseException as error:
        raise TroubleError(f"It raises {type(error).__name__}: {_message(error)}{_line(answer, error)}") from None


class _Limit:
    """Throws _TooLong into this thread after so many seconds of work, and again until it has stopped.

    Work is the processor's time: on a machine that is busy with other things a right answer takes longer by the clock.

    An exception from another thread works on every system and also where callbacks do not run on the main thread
    (a signal does not); it arrives between two lines of Python, not inside a long call into C. It is thrown only while
    the learner's own code runs: what an exercise has put around it (a ledger, the doctor) takes itself off in peace.
    """

    def __init__(self, answer: Any, seconds: float) -> None:
        self._files = _files(answer)
        self._seconds = seconds
        self._thread = threading.get_ident()
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, args=(_clock(),), daemon=True)
        self._trace = sys.gettrace()

    def begin(self) -> None:
        """Let the clock run."""
        self._watcher.start()

    def end(self) -> None:
        """Stop the clock; what is still on its way is taken back, or arrives here."""
        while True:
            try:
                self._over.set()
                self._watcher.join()
                _throw(self._thread, None)
                if sys.gettrace() is not self._trace:
                    sys.settrace(self._trace)
                break
            except _TooLong:
                continue

    def _watch(self, worked: Callable[[], float]) -> None:
        began, work, thrown, held, pause = time.monotonic(), worked(), 0, 0, _LOOK
        while not self._over.wait(pause):
            pause = _LOOK
            if worked() - work <= self._seconds and time.monotonic() - began <= _PATIENCE * self._seconds:
                continue
            if self._can_be_cut(held < _HELD):
                thrown, held = thrown + 1, 0
                _throw(self._thread, _TooLong if thrown <= _POLITE else self._twice())
            else:
                held, pause = held + 1, _SOON

    def _can_be_cut(self, kindly: bool) -> bool:
        """Whether the learner's code runs, in it no import and (``kindly``) nothing of ours, no with block's end."""
        for frame in _frames(sys._current_frames().get(self._thread)):
            name, code = frame.f_code.co_filename, frame.f_code.co_name
            if self._theirs(frame):
                return True
            if name.startswith("<frozen importlib"):
                return False
            if kindly and (code in ("__enter__", "__exit__") or name.startswith(_OURS)):
                return False
        return False

    def _theirs(self, frame: FrameType) -> bool:
        return frame.f_code.co_filename in self._files

    def _twice(self) -> type[_TooLong]:
        """Return what is made in the thread that it is thrown into, and there makes the next line raise as well.

        ``while True: try: ... except: pass`` catches whatever arrives inside its try; its own except has none around.
        """

        def strike(frame: FrameType, event: str, argument: Any) -> None:
            if self._theirs(frame):
                raise _TooLong

        class Twice(_TooLong):
            def __init__(self_) -> None:  # noqa: N805
                super().__init__()
                for frame in filter(self._theirs, _frames(sys._getframe(1))):
                    frame.f_trace = strike
                sys.settrace(strike)

        return Twice


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Go through the frames up to ``guarded``; the cell that calls for a check is often the answer's own."""
    while frame is not None and frame.f_code is not guarded.__code__:
        yield frame
        frame = frame.f_back


def _throw(thread: int, error: type[_TooLong] | None) -> None:
    thrown = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), thrown)


def _clock() -> Callable[[], float]:
    """Return a clock for the work of this thread that others can read; where there is none, for all threads."""
    if hasattr(time, "pthread_getcpuclockid"):
        return functools.partial(time.clock_gettime, time.pthread_getcpuclockid(threading.get_ident()))
    return time.process_time


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

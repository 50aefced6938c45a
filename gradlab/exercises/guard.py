"""Run a learner's function so that whatever it does ends in a word: exceptions, exits, loops without an end."""

from __future__ import annotations

import ctypes
import linecache
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOOK = 0.1  # seconds between two looks at the clock, and between two attempts to stop what catches everything
_PATIENCE = 6  # a function that waits instead of working gets so many times as long


class TroubleError(Exception):
    """What went wrong inside a learner's function, in a sentence without its full stop."""


class _TooLong(BaseException):
    """Thrown into a function that does not end; no ``except Exception`` of its own catches it."""


@contextmanager
def guarded(answer: Any, seconds: float) -> Iterator[None]:
    """Turn everything that a function does instead of returning into TroubleError; Ctrl-C stays what it is."""
    try:
        with _limited(seconds):
            yield
    except _TooLong as stopped:
        raise TroubleError(
            f"It did not end within {seconds:g} seconds{_line(answer, stopped)}: is there a loop without an end"
        ) from None
    except TroubleError:  # an exercise has found the words itself
        raise
    except (Exception, SystemExit) as error:
        words = " ".join(str(error).split()) or "without a message"
        words = words if len(words) <= 200 else f"{words[:197]}..."
        raise TroubleError(f"It raises {type(error).__name__}: {words}{_line(answer, error)}") from None


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Throw _TooLong into this thread after so many seconds of work, and again until it has stopped.

    Work is the processor's time: on a machine that is busy with other things a right answer takes longer by the clock.

    An exception from another thread works on every system and also where callbacks do not run on the main thread
    (a signal does not); it arrives between two lines of Python, not inside a long call into C.
    """
    thread = ctypes.c_ulong(threading.get_ident())
    throw = ctypes.pythonapi.PyThreadState_SetAsyncExc
    over = threading.Event()

    work, clock = time.process_time(), time.monotonic()

    def watch() -> None:
        while not over.wait(_LOOK):
            if time.process_time() - work > seconds or time.monotonic() - clock > _PATIENCE * seconds:
                throw(thread, ctypes.py_object(_TooLong))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        while True:
            try:
                over.set()
                watcher.join()
                throw(thread, None)  # one that is still on its way is taken back
                break
            except _TooLong:  # it has arrived right here
                continue


def _line(answer: Any, error: BaseException) -> str:
    """Say in which line of the learner's code it happened."""
    code = getattr(answer, "__code__", None)
    if code is None:
        return ""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == code.co_filename and frame.lineno:
            text = (frame.line or linecache.getline(frame.filename, frame.lineno)).strip()
            return f", in line {frame.lineno} of the cell: `{text}`" if text else ""
    return ""

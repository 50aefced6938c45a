"""Run a learner's code so that whatever it does ends in words: exceptions, exits, loops without an end.

A TimeLimit looks at the clock in two ways, and both end the code by an exception that no ``except Exception`` catches.

- By a timer's signal, on the main thread, where cells run. It needs no text: it ends whatever runs Python, and a call
  into C that looks for signals (a wait, a regular expression, arithmetic on huge numbers).
- By calls of ``tick`` that ``compile_with_ticks`` puts into a text, at each turn of a loop, function and comprehension.
  They work on every thread and system: JupyterLab answers a widget on another thread, and Windows has no such timer,
  nor has a browser's tab.

What nothing ends: a single call into C that never looks for signals, such as ``sum(iter(int, 1))``; what the code has
started beside itself; and off the main thread, or where there is no timer, all that does not come back to a text with
ticks: any function that was handed over as an object, a wait, a loop inside of a library.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

from ..._frames import Owner, code_owner, frames, raised_at
from ..._process import parse_python

_LOOK = 0.1  # seconds between two looks at the clock, and between two attempts to stop what catches everything
_SOON = 0.001  # seconds until the next look where what runs should not be cut off ...
_HELD = 100  # ... and so many looks it is given, because a loop may do nothing else
_POLITE = 5  # so many attempts may be caught; from the next one on the line that catches it raises as well
_PATIENCE = 6  # a function that waits instead of working gets so many times as long
_GRACE = 1.0  # seconds that a text with ticks has to end by itself
_LAYERS = 20  # of decorators; one that wraps itself has no end
_MOST_LETTERS = 200  # of what an exception says
_TICK, _TICKING = "__gradlab_tick__", "__gradlab_ticking__"


class TroubleError(Exception):
    """What went wrong inside a learner's function, in a sentence without its full stop."""


class TooLong(BaseException):
    """Raised in a learner's code when its time is up; no ``except Exception`` of its own catches it."""


def guarded(work: Callable[[], object], answer: object, seconds: float) -> object:
    """Return what ``work()`` does, which calls ``answer``; raise TroubleError for everything that happens instead.

    Ctrl-C stays what it is. An answer that is still running after so many seconds of work is stopped.
    """
    try:
        with TimeLimit(_files(answer), seconds):
            return work()
    except (TroubleError, KeyboardInterrupt):  # an exercise has found the words itself, or Ctrl-C
        raise
    except TooLong as stopped:
        raise TroubleError(
            f"It did not end within {seconds:g} seconds{_line(answer, stopped)}: is there a loop without an end"
        ) from None
    except BaseException as error:
        said = error_text(error) or "without a message"
        raise TroubleError(f"It raises {type(error).__name__}: {said}{_line(answer, error)}") from None


class TimeLimit:
    """``with limit:`` around a learner's code raises TooLong in it after so many seconds, again until it has ended.

    ``files`` are those that the code is from. Without ticks, seconds are of work, this thread's time of the processor:
    on a busy machine a right answer takes longer by the clock. With ticks they are seconds by the clock, and signals
    wait a moment for the tick, which ends the code at a line of its own. A signal's handler raises only while the
    learner's own code runs: what an exercise has put around it (a ledger, the doctor) takes itself off in peace.
    Where the code has forked, one process goes on with the notebook, not two.
    """

    def __init__(self, files: Collection[str], seconds: float, *, ticks: bool = False) -> None:
        self.words = ""
        """Why the code was ended, "" if it was not."""
        self._files, self._seconds = files, seconds
        self._patience, self._grace = (1, _GRACE) if ticks else (_PATIENCE, 0.0)
        self._raised = self._held = 0
        self._outside: FrameType | None = None
        self._process = os.getpid()
        self._signals = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()

    def __enter__(self) -> TimeLimit:
        self._outside = sys._getframe(1)
        self._began, self._worked = time.monotonic(), time.thread_time()
        if self._signals:
            self._trace = sys.gettrace()
            self._handler = signal.signal(signal.SIGALRM, self._look)
            self._timer = signal.setitimer(signal.ITIMER_REAL, _LOOK)
        return self

    def __exit__(self, *error: object) -> None:
        if os.getpid() != self._process:
            os._exit(1)
        self._outside = None
        if not self._signals:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._handler)
        if sys.gettrace() is not self._trace:
            sys.settrace(self._trace)
        left, interval = self._timer
        if left:  # a timer that ran before goes on
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - self._began), _SOON), interval)

    def tick(self) -> None:
        """Raise TooLong if the time is up; a model that a text has made may be used when the text has ended."""
        if self.words or (self._outside is not None and time.monotonic() - self._began > self._seconds):
            self.end()

    def end(self, words: str = "") -> None:
        """Raise TooLong now and at each tick from now on; ``words`` say why, if it is not the time."""
        late = f"It was stopped after {self._seconds:g} seconds: is there a loop without an end?"
        self.words = self.words or words or late
        raise TooLong(self.words)

    def _look(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal: raise in the learner's code if the time is up, and see to the next signal."""
        worked, passed = time.thread_time() - self._worked, time.monotonic() - self._began - self._grace
        over = worked > self._seconds + self._grace or passed > self._patience * self._seconds
        cut = over and self._can_be_cut(frame, kindly=self._held < _HELD)
        self._held = self._held + 1 if over and not cut else 0
        signal.setitimer(signal.ITIMER_REAL, _SOON if self._held else _LOOK)
        if cut:
            self._raised += 1
            if self._raised > _POLITE:
                self._raise_at_next_line(frame)
            self.end()

    def _can_be_cut(self, frame: FrameType | None, *, kindly: bool) -> bool:
        """Whether the learner's code runs, in it no import and (``kindly``) nothing of ours, no with block's end."""
        for inner in frames(frame, self._outside):  # further out: the cell that calls for a check is often the answer's
            name, code = inner.f_code.co_filename, inner.f_code.co_name
            if name in self._files:
                return True
            if name.startswith("<frozen importlib"):
                return False
            if kindly and (code in ("__enter__", "__exit__") or code_owner(name) is Owner.OURS):
                return False
        return False

    def _raise_at_next_line(self, frame: FrameType | None) -> None:
        """Let the learner's next line raise as well.

        ``while True: try: ... except: pass`` catches whatever arrives inside its try; its own except has none around.
        """

        def strike(frame: FrameType, event: str, argument: object) -> None:
            if event != "exception" and frame.f_code.co_filename in self._files:  # not inside the try once more
                raise TooLong

        for inner in frames(frame, self._outside):
            if inner.f_code.co_filename in self._files:
                inner.f_trace = strike
        sys.settrace(strike)


def error_text(error: BaseException) -> str:
    """Return what an exception says in one line, shortened; "" if it says nothing."""
    try:
        words = " ".join(str(error).split())
    except Exception:  # one of the learner's own may fail to say anything
        words = ""
    return words if len(words) <= _MOST_LETTERS else f"{words[: _MOST_LETTERS - 3]}..."


def compile_with_ticks(text: str, filename: str) -> CodeType:
    """Compile a text so that every turn of a loop, every function and every comprehension calls a ``tick``.

    Lines keep their numbers. Raises what Python raises for a text that is no Python.
    """
    tree = parse_python(text, filename)
    for node in list(ast.walk(tree)):
        if isinstance(node, (ast.For, ast.While, ast.FunctionDef)):
            tick = ast.Expr(ast.Call(ast.Name(_TICK, ast.Load()), [], []))
            node.body.insert(0, ast.copy_location(tick, node.body[0]))
        elif isinstance(node, ast.comprehension) and not node.is_async:
            ticking = ast.Call(ast.Name(_TICKING, ast.Load()), [node.iter], [])
            node.iter = ast.copy_location(ticking, node.iter)
    code: CodeType = compile(ast.fix_missing_locations(tree), filename, "exec", dont_inherit=True)
    linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename
    return code


def tick_names(tick: Callable[[], None]) -> dict[str, Any]:
    """Return the names by which a compiled text calls ``tick``."""

    def ticking(items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            tick()
            yield item

    return {_TICK: tick, _TICKING: ticking}


def _files(answer: Any) -> set[str]:
    """Return the files (of a notebook: the cells) that a learner's code is from; none for what is our own."""
    found = set()
    for layer in islice(_layers(answer), _LAYERS):
        for part in (layer, *vars(layer if isinstance(layer, type) else type(layer)).values()):
            function = part.__func__ if isinstance(part, (staticmethod, classmethod)) else part
            if isinstance(function, FunctionType) and code_owner(function.__code__.co_filename) is not Owner.OURS:
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


def _line(answer: Any, error: BaseException) -> str:
    """Say in which line of the learner's code it happened."""
    place = raised_at(error, _files(answer).__contains__)
    text = linecache.getline(place[0].co_filename, place[1]).strip() if place is not None else ""
    return f", in line {place[1]} of the cell: `{text}`" if place is not None and text else ""

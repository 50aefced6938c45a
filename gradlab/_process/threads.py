"""The threads of the process: those that run the learner's code, work for the main one, and locks."""

from __future__ import annotations

import ast
import contextvars
import gc
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from .._frames import Owner, code_owner, frames

lock = threading.RLock()
"""Held by calls that drive or show a widget, also on a thread of the learner's own; reentrant."""

_THREADING = threading.Thread.run.__code__.co_filename
_POOLS = (str(Path("concurrent/futures/thread.py")), str(Path("multiprocessing/pool.py")))


def learner_threads() -> list[str]:
    """Return the names of the other threads that run code of the learner's own, or have just begun to.

    A thread of Jupyter's, of a progress bar or of a pool that waits for work has no frame of theirs.
    """
    return [name for name, is_running in _learner_threads() if is_running]


def others_may_draw() -> bool:
    """Return whether another thread may draw random numbers while this one computes.

    Beside the main thread, one for the learner's own code may; beside any other the main one, where a cell may begin.
    """
    return threading.current_thread() is not threading.main_thread() or next(_learner_threads(), None) is not None


def innermost_frames() -> dict[int, FrameType]:
    """Return the current frame of each thread, by the thread's number.

    Before Python 3.11.9 sys._current_frames may collect garbage while it holds a lock of the interpreter's; an object
    that lets another thread run then, as a tensor does, stops the process for good (python/cpython issue 106883).
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()


def _learner_threads() -> Iterator[tuple[str, bool]]:
    """Yield the name of each other thread for code of the learner's own, and whether it runs some now."""
    stacks = innermost_frames()
    del stacks[threading.get_ident()]
    threads = {thread.ident: thread for thread in threading.enumerate()} if stacks else {}
    for ident, innermost in stacks.items():
        thread = threads.get(ident)
        name = str(ident) if thread is None else thread.name
        files = [frame.f_code.co_filename for frame in frames(innermost)]
        # If it ran on while its frames were followed, the outer ones are lost.
        if thread is not None and files[-1] != _THREADING:
            files = [frame.f_code.co_filename for frame in frames(innermost_frames().get(ident, innermost))]
        outermost = next((file for file in reversed(files) if file != _THREADING), "")
        if any(code_owner(file) is Owner.USER for file in files):
            yield name, True
        elif not outermost:  # it has just begun, or is a timer
            function = getattr(thread, "_target", None) or getattr(thread, "run", None)
            code = getattr(function, "__code__", None)
            yield name, code is None or code_owner(code.co_filename) is Owner.USER
        elif outermost.endswith(_POOLS):
            yield name, False


SERVED_LATELY = 0.5  # seconds: a call that serves does so more often, unless an update takes longer


class MainThread:
    """The main thread, which trains, draws and forecasts for widgets between two cells.

    JupyterLab delivers a widget's request on another thread while a cell runs. PyTorch's tables of hooks, its random
    numbers and ``.grad`` belong to the process, so work done there would affect the cell. It waits for the end of the
    cell, or until a long gradlab call of the cell reaches ``serve``.
    """

    def __init__(self) -> None:
        self.interrupted = False
        """Whether work done by ``serve`` was interrupted: then the calling cell must end, too."""
        self._waiting: deque[Callable[[], object]] = deque()
        self.is_working = False
        """Whether the main thread does handed-over work; an interrupt ends that."""
        self._cell_runs = False
        self._holds = 0
        self._served = 0.0

    @property
    def runs_cell(self) -> bool:
        """Whether a cell runs, which may still reach ``serve``."""
        return self._cell_runs and not self.is_working

    @property
    def is_busy(self) -> bool:
        """Whether work handed over now would wait for the end of a cell."""
        return self.runs_cell and time.monotonic() - self._served > SERVED_LATELY

    @property
    def is_wanted(self) -> bool:
        """Whether ``serve`` would find something to do; cheap enough to read after each update."""
        return bool(self._waiting) and self._may_serve()

    def begin_cell(self) -> None:
        """Note that the kernel runs a cell; ipykernel also reports each widget's request, on any thread."""
        if threading.current_thread() is threading.main_thread():
            self._cell_runs, self._served = True, 0.0

    def end_cell(self) -> None:
        """Note that the cell has ended."""
        if threading.current_thread() is threading.main_thread():
            self._cell_runs = False

    def hand_over(self, work: Callable[[], object], call_soon: Callable[[Callable[[], None]], object]) -> None:
        """Have work done on the main thread, in the caller's context; ``call_soon`` is that of its event loop."""
        self._waiting.append(partial(contextvars.copy_context().run, work))
        call_soon(self._work)

    def do(self, work: Callable[[], object]) -> None:
        """Do work for a widget now, on the main thread, after the work that waits."""
        self._waiting.append(work)
        for _ in range(len(self._waiting)):
            self._work()

    def serve(self) -> None:
        """Do waiting work, between two updates of a long call; nothing within ``hold`` or on other threads.

        Raises KeyboardInterrupt if that was interrupted.
        """
        if not self._may_serve():
            return
        self._served, self.interrupted = time.monotonic(), False
        for _ in range(len(self._waiting)):
            self._work()
        if self.interrupted:
            raise KeyboardInterrupt

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Do no waiting work within a ``with`` block, as an instrument watches all that this thread does."""
        here = threading.current_thread() is threading.main_thread()
        self._holds += here
        try:
            yield
        finally:
            self._holds -= here

    def _may_serve(self) -> bool:
        here = threading.current_thread() is threading.main_thread()
        return here and not (self._holds or self.is_working)

    def _work(self) -> None:
        if self.is_working or not self._waiting:
            return
        try:
            self.is_working = True
            self._waiting.popleft()()
            self.is_working = False  # within the block, so that an interrupt at this moment ends nothing else
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self.is_working = False


main_thread = MainThread()
"""The main thread of this process."""


_parser_lock = threading.Lock()


def parse_python(text: str, filename: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a text; SyntaxError and ValueError as from ast.parse.

    Python 3.11 counts the depth of its parser for all threads together, and a change of threads is an error to it
    (python/cpython issue 106905). A lock keeps our own threads apart; IPython parses cells without it. It is one
    of its own: the doctor parses in a thread that trains, while another holds the process's lock and waits for it.
    """
    with _parser_lock:
        for _ in range(9):
            with suppress(SystemError):
                return ast.parse(text, filename)
        return ast.parse(text, filename)


def progress_bar(total: int, label: str, **options: Any) -> Any:
    """Return tqdm's bar, shown after a second and removed at the end, without tqdm's monitor thread."""
    from tqdm.auto import tqdm

    class Bar(tqdm):  # type: ignore[misc, type-arg, unused-ignore]
        monitor_interval = 0

    return Bar(total=total, desc=label, delay=1, leave=False, **options)

"""Threads that run the learner's code, work that widgets hand over to the main thread, and thread-safe helpers."""

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

lock = threading.RLock()  # reentrant; a thread must hold this lock while it changes or shows a widget
_THREADING = threading.Thread.run.__code__.co_filename
_POOLS = (str(Path("concurrent/futures/thread.py")), str(Path("multiprocessing/pool.py")))


def learner_threads() -> list[str]:
    """Return the names of the other threads that are running, or about to run, the learner's code.

    Threads of Jupyter and of progress bars, and pool threads that wait for work, are not among them.
    """
    return [name for name, is_running in _learner_threads() if is_running]


def others_may_draw() -> bool:
    """Return whether another thread may draw random numbers while the current thread computes.

    On the main thread, only threads for the learner's code count; on any other thread, the result is always True.
    """
    return threading.current_thread() is not threading.main_thread() or next(_learner_threads(), None) is not None


def innermost_frames() -> dict[int, FrameType]:
    """Return the current frame of each thread, by thread id.

    Garbage collection is off during the call. Before Python 3.11.9, ``sys._current_frames`` could collect garbage while
    it held a lock; freeing a tensor, which releases the GIL, then caused a deadlock (python/cpython issue 106883).
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()


def _learner_threads() -> Iterator[tuple[str, bool]]:
    """Yield the name of each other thread that may run the learner's code, and whether it is running that code now."""
    stacks = innermost_frames()
    del stacks[threading.get_ident()]
    threads = {thread.ident: thread for thread in threading.enumerate()} if stacks else {}
    for ident, innermost in stacks.items():
        thread = threads.get(ident)
        name = str(ident) if thread is None else thread.name
        files = [frame.f_code.co_filename for frame in frames(innermost)]
        # If the thread ran on while its frames were listed, the outer frames are missing: list them again.
        if thread is not None and files[-1] != _THREADING:
            files = [frame.f_code.co_filename for frame in frames(innermost_frames().get(ident, innermost))]
        outermost = next((file for file in reversed(files) if file != _THREADING), "")
        if any(code_owner(file) is Owner.USER for file in files):
            yield name, True
        elif not outermost:  # the thread has just started, or is a timer
            function = getattr(thread, "_target", None) or getattr(thread, "run", None)
            code = getattr(function, "__code__", None)
            yield name, code is None or code_owner(code.co_filename) is Owner.USER
        elif outermost.endswith(_POOLS):
            yield name, False


SERVED_LATELY = 0.5  # seconds; a long gradlab call calls ``serve`` at least this often, unless an update takes longer


class MainThread:
    """The work that widgets hand over to the main thread: training, drawing and forecasts between two cells.

    While a cell runs, JupyterLab delivers a widget's request on another thread. PyTorch's tables of hooks, its random
    numbers and ``.grad`` belong to the process, so work on that thread would affect the cell. The work waits until the
    cell ends, or until a long gradlab call in the cell calls ``serve``.
    """

    def __init__(self) -> None:
        self.interrupted = False  # whether work done by ``serve`` was interrupted; if so, the calling cell must end
        self._waiting: deque[Callable[[], object]] = deque()
        self.is_working = False  # whether the main thread is doing a widget's work, which an interrupt may end
        self._cell_runs = False
        self._holds = 0
        self._served = 0.0

    @property
    def runs_cell(self) -> bool:
        """Whether the main thread is running a cell, not a widget's work; if so, the cell may still call ``serve``."""
        return self._cell_runs and not self.is_working

    @property
    def is_busy(self) -> bool:
        """Whether a cell is running that has not called ``serve`` in the last ``SERVED_LATELY`` seconds."""
        return self.runs_cell and time.monotonic() - self._served > SERVED_LATELY

    @property
    def is_wanted(self) -> bool:
        """Whether ``serve`` has work to do now. This property is cheap enough to read after each update."""
        return bool(self._waiting) and self._may_serve()

    def begin_cell(self) -> None:
        """Record that a cell has started; do nothing on another thread, where ipykernel reports widgets' requests."""
        if threading.current_thread() is threading.main_thread():
            self._cell_runs, self._served = True, 0.0

    def end_cell(self) -> None:
        """Record that the cell has ended; do nothing on another thread, for the same reason as in ``begin_cell``."""
        if threading.current_thread() is threading.main_thread():
            self._cell_runs = False

    def hand_over(self, work: Callable[[], object], call_soon: Callable[[Callable[[], None]], object]) -> None:
        """Queue ``work`` to run on the main thread in the caller's context; ``call_soon`` queues a callback there."""
        self._waiting.append(partial(contextvars.copy_context().run, work))
        call_soon(self._work)

    def do(self, work: Callable[[], object]) -> None:
        """Do the waiting work, then ``work``; inside other work, only queue ``work``. Call this on the main thread."""
        self._waiting.append(work)
        for _ in range(len(self._waiting)):
            self._work()

    def serve(self) -> None:
        """Do the waiting work; a long gradlab call in a cell calls this method between two updates.

        Do nothing inside ``hold`` or other work, or on another thread. Raises KeyboardInterrupt if work is interrupted.
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
        """Make ``serve`` do nothing during a ``with`` block, for example while the doctor observes the main thread."""
        here = threading.current_thread() is threading.main_thread()
        self._holds += here
        try:
            yield
        finally:
            self._holds -= here

    def _may_serve(self) -> bool:
        return threading.current_thread() is threading.main_thread() and not (self._holds or self.is_working)

    def _work(self) -> None:
        if self.is_working or not self._waiting:
            return
        try:
            self.is_working = True
            self._waiting.popleft()()
            self.is_working = False  # in the try block, so that an interrupt at this line is caught, too
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self.is_working = False


main_thread = MainThread()
_parser_lock = threading.Lock()


def parse_python(text: str, filename: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of Python source; raise SyntaxError or ValueError as ``ast.parse`` does.

    In Python 3.11, all threads share the parser's recursion counter, so a thread switch during parsing can raise
    SystemError (python/cpython issue 106905). gradlab's calls take turns, and retry because IPython's do not. Taking
    turns with ``lock`` could deadlock: its holder may be waiting for a training thread on which the doctor parses.
    """
    with _parser_lock:
        for _ in range(9):
            with suppress(SystemError):
                return ast.parse(text, filename)
        return ast.parse(text, filename)


def progress_bar(total: int, label: str, **options: Any) -> Any:
    """Return a tqdm bar that appears after a second, is removed at the end, and starts no monitor thread."""
    from tqdm.auto import tqdm

    class Bar(tqdm):  # type: ignore[misc, type-arg, unused-ignore]
        monitor_interval = 0

    return Bar(total=total, desc=label, delay=1, leave=False, **options)

"""A process that trains for another one: it is watched where it runs, and its report goes to a folder.

This file is imported by every process that multiprocessing starts anew, and so it imports no torch by itself.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from .child_reports import ChildReport, expect_no_report, expect_report, write_report

if TYPE_CHECKING:
    from ..watching import watch

_GRACE = 2.0  # seconds in which processes that Ctrl-C has reached, too, end by themselves
_PATIENCE = 10.0  # seconds that a process gets for its report when it is ended


@dataclass(frozen=True)
class WatchLimits:
    """When a watch ends early, and where its report goes."""

    folder: Path
    updates: int | None = None
    seconds: float | None = None


class FollowedProcesses:
    """The processes of multiprocessing that a program starts; each is watched and writes a report."""

    def __init__(self, limits: WatchLimits, leave: Callable[[], None]) -> None:
        """``leave`` ends, in a process that was forked, the watch of the one that it was forked from."""
        self._limits, self._leave = limits, leave
        self._started: WeakSet[BaseProcess] = WeakSet()
        self._numbers = itertools.count()

    def follow(self, process: BaseProcess) -> Callable[[], None]:
        """Return what is to run in the place of the process's own ``run``."""
        path = self._limits.folder / f"{os.getpid()}-{next(self._numbers)}"
        name = _name(process)
        expect_report(path, name)
        self._started.add(process)
        return _WatchedRun(process, path, name, self._limits, self._leave)

    def finish(self, *, patient: bool) -> None:
        """Wait for the reports: Python itself waits at exit for processes, and ends those that are daemons.

        If the program was ended from outside, the others that were not are ended, too.
        """
        running = set(multiprocessing.active_children()) if self._started else set()
        waiting = [process for process in self._started if process in running]
        if not patient:
            end = time.monotonic() + _GRACE
            for process in waiting:
                process.join(max(0.0, end - time.monotonic()))
        for process in waiting:
            if process.daemon or not patient:
                process.terminate()
        for process in waiting:
            process.join(None if patient and not process.daemon else _PATIENCE)


@dataclass
class _WatchedRun:
    """Runs a process's own ``run`` under watch; it can be sent to a new interpreter."""

    process: BaseProcess
    path: Path
    name: str
    limits: WatchLimits
    leave: Callable[[], None] | None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"leave": None}

    def __call__(self) -> None:
        vars(self.process).pop("run", None)
        if self.leave is not None:
            self.leave()
        if "torch" not in sys.modules:
            self.process.run()
            if "torch" not in sys.modules:
                expect_no_report(self.path)
            return
        from ..reports import asked_codes
        from ..watching import watch

        report = watch(updates=self.limits.updates, seconds=self.limits.seconds, also=asked_codes())
        run_and_report(self.process.run, report, self.path, self.name)


def run_and_report(run: Callable[[], None], report: watch, path: Path, name: str) -> None:
    """Run something under watch, write what there is to say, and let the process go on, or end, as it would have."""
    try:
        with sigterm_raises():
            try:
                with report:
                    run()
            finally:
                with suppress(OSError):  # without a place for the report the program is not to suffer
                    write_report(path, ChildReport(name, report, report.trained, report.rank_norms))
    except TerminatedError:
        die_of_sigterm()
        raise


def _name(process: BaseProcess) -> str:
    target = getattr(process, "_target", None)
    arguments: tuple[Any, ...] = getattr(process, "_args", ())
    if getattr(target, "__module__", "") == "torch.multiprocessing.spawn" and len(arguments) > 1:
        return f"rank {arguments[1]}"
    return process.name


_SAME = 5.0  # seconds in which a second signal is taken for the first: it is sent to a process and to its group


class TerminatedError(SystemExit):
    """SIGTERM has arrived."""


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Raise TerminatedError at SIGTERM, unless the program or the one that started it has other plans for it."""
    process, first = os.getpid(), 0.0

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if os.getpid() != process:  # a child that was forked ends as it would
            die_of_sigterm()
        elif not first:
            first = time.monotonic()
            raise TerminatedError(128 + number)
        elif time.monotonic() - first > _SAME:
            die_of_sigterm()

    before = signal.getsignal(signal.SIGTERM)
    ours = getattr(before, "__module__", "") == __name__  # a forked child has its parent's
    if threading.current_thread() is not threading.main_thread() or not (ours or before is signal.SIG_DFL):
        yield
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is end:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def die_of_sigterm() -> None:
    """End as a process ends that does nothing about SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)

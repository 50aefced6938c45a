"""The processes that a program starts: each ends with the program, and the first may report in its place.

This file is imported by every process that multiprocessing starts anew, and so it imports no torch by itself.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any

from .._process import end_with_parent
from .finding import Cause, Finding, Report


def write_report(path: Path, report: Report) -> None:
    """Write a report for another process; without a place for it the program is not to suffer."""
    with suppress(OSError):
        path.write_text(json.dumps(report.as_dict()), encoding="utf-8")


def read_report(path: Path) -> Report | None:
    """Read the report of another process; None if it has left none, or was ended while it wrote."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    findings = [Finding(**raw | {"cause": Cause(**raw["cause"]) if raw["cause"] else None}) for raw in data["findings"]]
    return Report(**data | {"findings": findings})


@dataclass
class ChildRun:
    """Stands for a process's own ``run``, and watches it if there is a path for the report.

    It can be sent to a new interpreter. In a forked process, ``leave`` ends the watch that it has from its parent.
    """

    process: BaseProcess
    path: Path | None
    limits: dict[str, Any]
    leave: Callable[[], None] | None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"leave": None}

    def __call__(self) -> None:
        """Run in the new process."""
        vars(self.process).pop("run", None)
        end_with_parent()
        if self.leave is not None:
            self.leave()
        if self.path is None:
            self.process.run()
            return
        from .watching import watch

        report = watch(**self.limits)
        try:
            with sigterm_raises():
                try:
                    with report:
                        self.process.run()
                finally:
                    write_report(self.path, report)
        except TerminatedError:
            die_of_sigterm()


class TerminatedError(SystemExit):
    """SIGTERM has arrived."""


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Raise TerminatedError at the first SIGTERM, unless the program or the one that started it has other plans."""
    process, ended = os.getpid(), False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal ended
        if os.getpid() != process:  # a forked child ends as it would
            die_of_sigterm()
        if not ended:  # it comes twice where it is sent to a process and to its group
            ended = True
            raise TerminatedError(128 + number)

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

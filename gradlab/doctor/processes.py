"""Child processes of a watched program. Each ends with the program, and the first may supply the program's report.

Every process that multiprocessing spawns imports this file, so the file itself does not import torch.
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
    """Write a report to ``path`` as JSON, but ignore an OSError, so that the program goes on."""
    with suppress(OSError):
        path.write_text(json.dumps(report.as_dict()), encoding="utf-8")


def read_report(path: Path) -> Report | None:
    """Return the report that another process wrote to ``path``, or None if the file is missing or incomplete."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    findings = [Finding(**raw | {"cause": Cause(**raw["cause"]) if raw["cause"] else None}) for raw in data["findings"]]
    return Report(**data | {"findings": findings})


@dataclass
class ChildRun:
    """A replacement for a process's ``run`` that also watches the process if there is a ``path`` for the report.

    Pickling for a new interpreter drops ``leave``, which ends the watch that a forked process inherits from its parent.
    """

    process: BaseProcess
    path: Path | None
    limits: dict[str, Any]
    leave: Callable[[], None] | None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"leave": None}

    def __call__(self) -> None:
        """Call the process's own ``run`` in the new process. If there is a ``path``, watch it and write a report."""
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
    """Raised in the program when SIGTERM arrives."""


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Raise TerminatedError at the first SIGTERM in a block on the main thread, unless SIGTERM has another handler."""
    process, ended = os.getpid(), False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal ended
        if os.getpid() != process:  # a forked child ends as it would without this handler
            die_of_sigterm()
        if not ended:  # the signal comes twice if it is sent to a process and to its group
            ended = True
            raise TerminatedError(128 + number)

    before = signal.getsignal(signal.SIGTERM)
    ours = getattr(before, "__module__", "") == __name__  # a forked child inherits its parent's handler
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
    """End this process with the default action of SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)

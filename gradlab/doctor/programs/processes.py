"""The processes of a program: the first one, or rank 0 of torchrun, is watched and reports; all end with the program.

This file is imported by every process that multiprocessing starts anew, and so it imports no torch by itself.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..._process import end_with_parent, running_module
from ...formatting import number_of
from ..finding import Cause, Finding, Report
from .entry_point import NotRunnableError

if TYPE_CHECKING:
    from ..watching import watch

LAUNCHER = "torch.distributed.run"
"""The module that torchrun is."""
_SAME_SIGNAL_SECONDS = 5.0  # a second SIGTERM within them is taken for the first: it is sent to a process and its group

Limits = Mapping[str, Any]
"""When a watch ends early: its arguments ``updates`` and ``seconds``."""


def write_report(path: Path, report: Report) -> None:
    """Write a report for another process, whole or not at all."""
    half = path.with_suffix(".half")
    half.write_text(json.dumps(report.as_dict()), encoding="utf-8")
    os.replace(half, path)


def read_report(path: Path) -> Report | None:
    """Read the report of another process; None if it has left none."""
    if not path.exists():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    findings = [Finding(**one | {"cause": Cause(**one["cause"]) if one["cause"] else None}) for one in data["findings"]]
    return Report(**data | {"findings": findings})


def note_unwatched(processes: int) -> str:
    """Return the sentence on processes that were not watched; "" for none."""
    return f" The doctor did not watch {number_of(processes, 'other process', 'es')}." if processes > 0 else ""


def run_and_report(run: Callable[[], None], report: watch, write: Callable[[], None]) -> None:
    """Run something under watch, write the report, and let the process go on, or end, as it would have."""
    try:
        with sigterm_raises():
            try:
                with report:
                    run()
            finally:
                with suppress(OSError):  # without a place for the report the program is not to suffer
                    write()
    except TerminatedError:
        die_of_sigterm()
        raise


@dataclass
class ChildRun:
    """Runs a process's own ``run``, under watch if there is a path for the report; it can be sent to a new interpreter.

    ``leave`` ends, in a process that was forked, the watch of the one that it was forked from.
    """

    process: BaseProcess
    path: Path | None
    limits: Limits
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
        from ..watching import watch

        report = watch(**self.limits)
        run_and_report(self.process.run, report, partial(write_report, self.path, report))


def rank_of_torchrun() -> int | None:
    """Return which of several ranks of torchrun this process is; None if it is alone."""
    several = "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1
    return int(os.environ["RANK"]) if several else None


def run_torchrun(arguments: Sequence[str], limits: Limits, report: Path) -> int:
    """Run torchrun with each rank under the doctor; rank 0 writes to ``report``. It ends when this process ends."""
    with running_module(LAUNCHER, watched_arguments(arguments, limits, report)) as running:
        return running.wait()


def watched_arguments(arguments: Sequence[str], limits: Limits, report: Path) -> list[str]:
    """Return the arguments of torchrun with which each rank runs under the doctor.

    Raises NotRunnableError for arguments that torchrun does not take, or that leave no room for the doctor.
    """
    from torch.distributed.run import get_args_parser

    parser = get_args_parser()
    parser.prog, parser.usage = "torchrun", "gradlab doctor torchrun [options of torchrun] train.py ..."
    try:
        given = parser.parse_args([*arguments])
    except SystemExit as error:  # torchrun has said what is wrong
        raise NotRunnableError("torchrun does not take these arguments") from error
    if given.no_python or given.run_path:
        raise NotRunnableError("torchrun with --no-python or --run-path cannot be watched; leave that option out")
    own = [*arguments][: len(arguments) - len(given.training_script_args) - 1]
    options = [text for name, limit in limits.items() if limit is not None for text in (f"--{name}", str(limit))]
    program = [*(["-m"] if given.module else []), given.training_script, *given.training_script_args]
    # Without a place for logs torchrun leaves a folder among the temporary files, even if nothing is to be logged.
    logged = given.log_dir or {given.redirects, given.tee} != {"0"}
    logs = [] if logged else ["--log-dir", str(report.parent / "logs")]
    return [*logs, *own, "-m", "gradlab", "doctor", "--report-to", str(report), *options, *program]


class TerminatedError(SystemExit):
    """SIGTERM has arrived."""


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Raise TerminatedError at SIGTERM, unless the program or the one that started it has other plans for it."""
    process, first = os.getpid(), 0.0

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal first
        before, first = first, first or time.monotonic()
        again = before and time.monotonic() - before > _SAME_SIGNAL_SECONDS
        if os.getpid() != process or again:  # a forked child ends as it would
            die_of_sigterm()
        elif not before:
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

"""The processes that train for a program: each is watched where it runs, and their reports become one.

This file is imported by every process that multiprocessing starts anew, and so it imports no torch by itself.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ..._process import end_with_parent
from ...formatting import join_words
from ..finding import SEVERITIES, Cause, Finding, Report

if TYPE_CHECKING:
    from ..watching import watch

_GRACE = 2.0  # seconds in which processes that Ctrl-C has reached, too, end by themselves
_PATIENCE = 10.0  # seconds that a process gets for its report when it is ended
ITSELF = "the program itself"
"""The name of the process that the doctor was started in."""
_ALIKE = 1e-3  # of the larger one; all-reduce gives each rank the same sum
_MOST_LISTED = 8  # names
_PENDING, _DONE = ".pending", ".json"


@dataclass
class ChildReport:
    """What one process has to say."""

    name: str
    """What to call it, such as "rank 1"."""
    report: Report
    trained: bool = True
    gradients: dict[str, float] = field(default_factory=dict)
    """Norms of the gradients that DistributedDataParallel makes alike: number of an update -> norm."""


def expect_report(path: Path, name: str) -> None:
    """Note that a process is about to start; its report is to be at ``path``."""
    path.with_suffix(_PENDING).write_text(name, encoding="utf-8")


def expect_no_report(path: Path) -> None:
    """Note that a process has nothing to report: it trained nothing."""
    path.with_suffix(_PENDING).unlink(missing_ok=True)


def write_report(path: Path, child: ChildReport) -> None:
    """Write the report of a process, whole or not at all."""
    expect_no_report(path)
    data = {"name": child.name, **child.report.as_dict(), "trained": child.trained, "gradients": child.gradients}
    half = path.with_suffix(".half")
    half.write_text(json.dumps(data), encoding="utf-8")
    os.replace(half, path.with_suffix(_DONE))


def read_reports(folder: Path) -> tuple[list[ChildReport], list[str]]:
    """Return the reports, those of the lowest ranks first, and the names of processes that left none."""
    found = [_read(path) for path in folder.glob(f"*{_DONE}")]
    lost = [path.read_text(encoding="utf-8") for path in folder.glob(f"*{_PENDING}")]
    return sorted(found, key=lambda child: _natural(child.name)), sorted(lost, key=_natural)


def _read(path: Path) -> ChildReport:
    data = json.loads(path.read_text(encoding="utf-8"))
    findings = [Finding(**one | {"cause": Cause(**one["cause"]) if one["cause"] else None}) for one in data["findings"]]
    report = Report(findings, data["watched"], data["missing"], data["judged"])
    return ChildReport(data["name"], report, data["trained"], data["gradients"])


def _natural(name: str) -> str:
    """Sort "rank 10" after "rank 9"."""
    return re.sub(r"\d+", lambda number: number[0].zfill(9), name)


def merge_reports(children: Sequence[ChildReport], lost: Sequence[str] = ()) -> Report:
    """Return one report of one or more processes, those that trained nothing left out if others did.

    A finding that only some of them have says which.
    """
    children = [child for child in children if child.trained] or children[:1]
    seen: dict[tuple[str, str, int], tuple[Finding, list[str]]] = {}
    for child in children:
        for finding in child.report.findings:
            seen.setdefault((finding.code, finding.file, finding.line), (finding, []))[1].append(child.name)
    findings = [
        finding
        if len(set(names)) == len(children)
        else replace(finding, evidence=f"{finding.evidence} (only in {_listed(names)} of {len(children)} processes)")
        for finding, names in seen.values()
    ]
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    words = [_watched(children), *_unlike_gradients(children)]
    if lost:
        words.append(f"No report came from {_listed(lost)}, which ended before it could be written.")
    missing = children[0].report.missing
    return Report(findings, " ".join(words), missing, not lost and all(child.report.judged for child in children))


def _watched(children: Sequence[ChildReport]) -> str:
    alike: dict[str, list[str]] = {}
    for child in children:
        alike.setdefault(child.report.watched, []).append(child.name)
    if [child.name for child in children] == [ITSELF]:
        return children[0].report.watched
    each = "each of " if len(alike) == 1 < len(children) else ""
    return " ".join(f"In {each}{_listed(names)}: {watched}" for watched, names in alike.items())


def _unlike_gradients(children: Sequence[ChildReport]) -> list[str]:
    """Return a sentence on the first update whose gradients the ranks do not share, none if they share all."""
    first = children[0]
    for update, one in first.gradients.items():
        for other in children[1:]:
            another = other.gradients.get(update, one)
            if abs(one - another) > _ALIKE * max(one, another):
                return [
                    f"At update {update} the gradients of {first.name} and {other.name} differ (norms {one:.4g} and "
                    f"{another:.4g}), although the model is in DistributedDataParallel: a pass went past the wrapper, "
                    "or ran inside no_sync()."
                ]
    return []


def _listed(names: Sequence[str]) -> str:
    """Write names as words, those with the same first word together: "ranks 0, 1 and 3"."""
    names, start = list(dict.fromkeys(names)), ""
    if len(names) > 1 and all(name.startswith("rank ") for name in names):
        names, start = [name.removeprefix("rank ") for name in names], "ranks "
    if len(names) > _MOST_LISTED:
        names = [*names[:_MOST_LISTED], "...", names[-1]]
    return start + join_words(names)


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
        waiting = [process for process in multiprocessing.active_children() if process in self._started]
        try:
            end = time.monotonic() + _GRACE
            for process in [] if patient else waiting:
                process.join(max(0.0, end - time.monotonic()))
        finally:  # also at a second Ctrl-C
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
        end_with_parent()
        if self.leave is not None:
            self.leave()
        if "torch" not in sys.modules:
            self.process.run()
            if "torch" not in sys.modules:
                expect_no_report(self.path)
            return
        from ..rules import asked_codes
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
        before, first = first, first or time.monotonic()
        if os.getpid() != process or (before and time.monotonic() - before > _SAME):  # a forked child ends as it would
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

"""A watch over a whole program: over the processes that it starts, too, and as one rank among others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..finding import Report
from ..watching import watch
from .child_processes import ChildProcesses
from .child_reports import ChildReport, write_report
from .child_run import FollowedProcesses, WatchLimits


class ProgramWatch(watch):
    """A watch that follows processes."""

    def __init__(self, limits: WatchLimits, on_enough: Callable[[Report], object] | None = None) -> None:
        """``on_enough(report)`` is called when the watch has ended early."""
        super().__init__(updates=limits.updates, seconds=limits.seconds)
        self._on_enough = on_enough
        self.processes = FollowedProcesses(limits, self._leave)

    def write(self, path: Path, name: str) -> None:
        """Write the report for another process to read."""
        write_report(path, self.as_child(name))

    def as_child(self, name: str) -> ChildReport:
        """Return the report as one of several."""
        return ChildReport(name, self, self.trained, self.rank_norms)

    def _listen_to_children(self) -> ChildProcesses:
        return ChildProcesses(self.processes.follow)

    def _leave(self) -> None:
        """End the watch in a process that was forked, without a word."""
        self.__exit__(None, None, None)

    def _end_early(self) -> None:
        super()._end_early()
        if self._on_enough is not None:
            self._on_enough(self)

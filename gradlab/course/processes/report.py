"""How the processes ended, in words: which failed first and where, which only lost a partner, which hung."""

from __future__ import annotations

import linecache
import multiprocessing
import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

NO_PROCESSES = (
    "Processes cannot be started here: {}. What follows needs them; read on with the stored pictures, or run this "
    "notebook with Python on a computer."
)
NO_FOLDER = (
    "Processes cannot be started: what this Python keeps among the temporary files, in {}, was removed; restart the "
    "kernel."
)
NO_NETWORK = (
    "The processes could not meet. They talk over this machine's own network (127.0.0.1), and this place does not "
    "allow it: {}. What follows needs it; read on with the stored pictures."
)
_NO_GLOO = (
    "The processes could not meet: gloo in this version of PyTorch does not work on Windows (pytorch/pytorch, "
    "issue 150381). A newer version may. What follows needs it; read on with the stored pictures."
)
_MOST_WORDS = 200  # characters of an error


@dataclass(frozen=True)
class LaunchResult:
    """What ``launch`` returns; true where every process came to its end, and shown as what each of them printed."""

    printed: tuple[str, ...]
    """What each rank printed."""
    error: str
    """What went wrong, in words; empty where nothing did."""
    seconds: float = 0.0
    pids: tuple[int, ...] = ()
    """The numbers that the system gave the processes."""

    @property
    def ok(self) -> bool:
        """Whether every process came to its end."""
        return not self.error

    def __bool__(self) -> bool:
        return self.ok

    @property
    def still_running(self) -> list[int]:
        """Those of the processes that the system still has: none, whatever happened."""
        return [pid for pid in self.pids if _is_there(pid)]

    def lines(self, rank: int) -> list[str]:
        """Return the lines that a rank printed, and then what went wrong, if anything did."""
        text = self.printed[rank] if rank < len(self.printed) else ""
        return [*text.splitlines(), *self.error.splitlines()]

    def __repr__(self) -> str:
        name = "rank {} | " if len(self.printed) > 1 else ""
        lines = [name.format(rank) + line for rank, text in enumerate(self.printed) for line in text.splitlines()]
        return (
            "\n".join([*lines, *filter(None, [self.error])])
            or "All processes ended without an error and printed nothing."
        )


def _is_there(pid: int) -> bool:
    if not hasattr(os, "killpg"):  # Windows, where os.kill(pid, 0) would send a Ctrl-C
        return any(child.pid == pid for child in multiprocessing.active_children())
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):  # the second: the number is another's by now
        return False
    return True


class RankError(NamedTuple):
    """What the script raised in one process."""

    kind: str
    words: str
    line: int | None
    """Of the script."""
    when: float
    meeting: bool
    """Whether it was while the processes were to meet."""


class RankExit(NamedTuple):
    """How one process ended."""

    code: int | None
    """0, an exit code, or minus the signal that ended it."""
    raised: RankError | None
    killed: bool
    """Whether ``launch`` had to end it."""
    line: int | None = None
    """Of the script, where it stood then."""
    errors: str = ""
    """What it wrote to stderr."""


def describe_failure(ranks: list[RankExit], script: Path, seconds: float | None) -> str:
    """Say what went wrong, the cause first; an empty text if nothing did.

    seconds: the limit, if it was reached.
    """
    bad = [number for number, rank in enumerate(ranks) if rank.code != 0 or rank.killed]
    if not bad:
        return ""
    where = {number: _line(ranks[number], script) for number in bad}
    errors = [rank.raised for rank in ranks if rank.raised]
    meeting = [n for n in bad if "init_process_group" in where[n] or getattr(ranks[n].raised, "meeting", False)]
    if len(meeting) == len(ranks):
        why = errors[0].words.rpartition("] ")[2][:160].rstrip(". ") if errors else "no answer"
        words = _NO_GLOO if "unsupported gloo device" in why else NO_NETWORK.format(why)
        return f"{words}\nNo process is left."
    said = []
    if seconds is not None:
        unit = "second" if seconds == 1 else "seconds"
        said.append(f"Not done after {seconds:g} {unit}: what was still running has been ended.")
    for place, number in enumerate(sorted(bad, key=lambda number: _order(ranks[number]))):
        said.append(f"rank {number} {_what(ranks[number], caused=place == 0 and seconds is None)}")
        said += [f"    at {where[number]}"] if where[number] else []
        said += _last_words(ranks[number])
    return "\n".join([*said, "No process is left."])


def _order(rank: RankExit) -> float:
    """Order by cause: killed from outside, then by the time of the error, then what had to be ended."""
    if rank.killed:
        return float("inf")
    return rank.raised.when if rank.raised else 0.0


def _what(rank: RankExit, caused: bool) -> str:
    if rank.killed:
        return "had not finished"
    if rank.raised:
        kind, words = rank.raised.kind, rank.raised.words
        if not caused and re.search("(?i:connection|peer|timed out|socket)", words):
            return f"lost its partner: {kind}"
        if kind == "SystemExit":
            return f"left with exit code {words}"
        return f"failed: {kind}: {words if len(words) < _MOST_WORDS else words[: _MOST_WORDS - 3] + '...'}"
    if rank.code is not None and rank.code < 0:
        name = next((known.name for known in signal.Signals if known == -rank.code), f"signal {-rank.code}")
        return f"was killed: {name}" + (", as the system does when memory runs out" if name == "SIGKILL" else "")
    return f"left with exit code {rank.code}"


def _last_words(rank: RankExit) -> list[str]:
    """Return a line with the end of stderr, or of what C++ or Python wrote when it aborted, if no error was raised."""
    begin = max(rank.errors.rfind(mark) for mark in ("terminate called", "Fatal Python error"))
    tail = rank.errors[begin:][:_MOST_WORDS] if begin >= 0 else rank.errors[-_MOST_WORDS:]
    words = " ".join(tail.split())
    return [f"    its last words on stderr: {words}"] if words and not rank.raised and not rank.killed else []


def _line(rank: RankExit, script: Path) -> str:
    """Return the line of the script where it stopped, with its number; empty where nobody knows."""
    number = rank.raised.line if rank.raised else rank.line
    if number is None:
        return ""
    linecache.checkcache(str(script))
    return f"line {number} of {script.name}: {linecache.getline(str(script), number).strip()}"

"""What became of several processes, in words: who failed first and where, who only lost a partner, who hung."""

from __future__ import annotations

import linecache
import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NO_NETWORK = (
    "The processes could not meet. They talk over this machine's own network (127.0.0.1), and this place does not "
    "allow it: {}. What follows needs it; read on with the stored pictures."
)
_HERE = re.compile(r'File "([^"]+)", line (\d+) in')


@dataclass(frozen=True)
class Launched:
    """What ``launch`` returns; true where every process came to its end, and shown as what each of them printed."""

    ok: bool
    printed: tuple[str, ...]
    """What each rank printed."""
    told: str
    """What went wrong, in words; empty where nothing did."""
    seconds: float
    pids: tuple[int, ...]
    """The numbers that the system gave the processes."""

    @classmethod
    def failed(cls, told: str) -> Launched:
        """Return what could not even be started."""
        return cls(False, (), told, 0.0, ())

    def __bool__(self) -> bool:
        return self.ok

    @property
    def left(self) -> list[int]:
        """Those of the processes that are still there: none, whatever happened."""
        return [pid for pid in self.pids if _is_there(pid)]

    def of(self, rank: int) -> list[str]:
        """Return the lines that a rank printed; where it printed nothing, what went wrong."""
        text = self.printed[rank] if rank < len(self.printed) else ""
        return (text or self.told).splitlines()

    def __repr__(self) -> str:
        many = len(self.printed) > 1
        lines = [
            f"rank {rank} | {line}" if many else line
            for rank, text in enumerate(self.printed)
            for line in text.splitlines()
        ]
        return "\n".join([*lines, *([self.told] if self.told else [])]) or "Done, and nothing was printed."


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the number is another's by now
        return False
    return True


@dataclass(frozen=True)
class Rank:
    """How one process ended."""

    code: int | None
    """0, an exit code, or minus the signal that ended it."""
    raised: dict[str, Any] | None
    """kind, words, line, when, meeting: what the script raised."""
    ended_by_us: bool
    stderr: str


def aftermath(ranks: list[Rank], script: Path, seconds: float | None) -> str:
    """Say what went wrong, the cause first; an empty text if nothing did.

    seconds: the limit, if it was reached.
    """
    bad = [number for number, rank in enumerate(ranks) if rank.code != 0 or rank.ended_by_us]
    if not bad:
        return ""
    here = {number: _line(ranks[number], script) for number in bad}
    meeting = [n for n in bad if (ranks[n].raised or {}).get("meeting") or "init_process_group" in here[n]]
    if len(meeting) == len(ranks):
        return _never_met(ranks)
    words = (
        []
        if seconds is None
        else [f"Not done after {seconds:g} second{'s' * (seconds != 1)}: what was still running has been ended."]
    )
    order = sorted(bad, key=lambda number: _when(ranks[number]))
    for place, number in enumerate(order):
        words.append(f"rank {number} {_what(ranks[number], caused=place == 0 and seconds is None)}")
        if here[number]:
            words.append(f"    at {here[number]}")
    return "\n".join([*words, "No process is left."])


def _when(rank: Rank) -> float:
    """Order by cause: killed from outside, then by the time of the error, then what had to be ended."""
    if rank.ended_by_us:
        return float("inf")
    return rank.raised["when"] if rank.raised else 0.0


def _what(rank: Rank, caused: bool) -> str:
    if rank.ended_by_us:
        return "had not finished"
    if rank.raised:
        kind, words = rank.raised["kind"], rank.raised["words"]
        if not caused and re.search("(?i:connection|peer|timed out|socket)", words):
            return f"lost its partner: {kind}"
        if kind == "SystemExit":
            return f"left with exit code {words}"
        return f"failed: {kind}: {words if len(words) < 200 else words[:197] + '...'}"
    if rank.code is not None and rank.code < 0:
        name = signal.Signals(-rank.code).name
        return f"was killed: {name}" + (", as the system does when memory runs out" if name == "SIGKILL" else "")
    return f"left with exit code {rank.code}"


def _line(rank: Rank, script: Path) -> str:
    """Return the line of the script where it stopped, with its number; empty where nobody knows."""
    number = (rank.raised or {}).get("line")
    if number is None and rank.ended_by_us:
        stack = rank.stderr.rpartition("most recent call first")[2]
        number = next((int(line) for file, line in _HERE.findall(stack) if file == str(script)), None)
    if number is None:
        return ""
    linecache.checkcache(str(script))
    return f"line {number} of {script.name}: {linecache.getline(str(script), number).strip()}"


def _never_met(ranks: list[Rank]) -> str:
    words = [rank.raised["words"] for rank in ranks if rank.raised]
    why = words[0].rpartition("] ")[2][:160].rstrip(". ") if words else "no answer"
    return f"{NO_NETWORK.format(why)}\nNo process is left."

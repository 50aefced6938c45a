"""The record of a learner: guesses, checked exercises and visits, one line of JSON each, in one file on this machine.

All notebooks and kernels of a learner append to the same file, each event in one write under a lock. What cannot be
written is kept as long as the kernel runs and is written with the next event that can be.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import filelock
import platformdirs

from .._process import lock

RECORD_VARIABLE = "GRADLAB_RECORD"
"""The environment variable with the path of the record; ``off`` keeps nothing on disk."""

RECORD_FORMAT = 1
_FORMAT_KEY = "gradlab record"
GUESS, CHECK, VISIT = "guess", "check", "visit"
_BETWEEN_VISITS = timedelta(minutes=1)
_LOCK_SECONDS = 2.0  # a write takes a millisecond; longer than this means that locks do not work in this folder


@dataclass(frozen=True)
class RecordEvent:
    """Something that a learner did. It names a question, an exercise or a notebook, and nobody."""

    kind: str
    """``"guess"``, ``"check"`` of an exercise, or ``"visit"`` of a notebook."""
    name: str
    """``"03/where-do-the-weights-go"``, ``"period_of"``, or ``"03"``."""
    at: datetime
    choice: str = ""
    """The text of the option that was guessed."""
    right: bool = False
    """Whether the guess was right, or the check passed."""

    def line(self) -> str:
        """Return the event as a line of the record."""
        entry: dict[str, Any] = {"event": self.kind, "name": self.name, "at": self.at.isoformat()}
        if self.kind == GUESS:
            entry["choice"] = self.choice
        if self.kind != VISIT:
            entry["right"] = self.right
        return json.dumps(entry, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class RecordText:
    """What a record holds: its events in the order of its lines, and the lines that could not be read."""

    events: tuple[RecordEvent, ...] = ()
    unread: tuple[int, ...] = ()
    cut_off: bool = False
    """Whether the last line is one of them and has no end: writing it was interrupted."""
    newer: bool = False
    """Whether a newer gradlab wrote it, in a format that this one does not know."""

    @property
    def trouble(self) -> str:
        """One sentence about what could not be read, "" where everything could."""
        if self.newer:
            return "It was written by a newer gradlab; only what this version understands is read."
        if not self.unread:
            return ""
        others = self.unread[:-1] if self.cut_off else self.unread
        parts = [f"its last line, {self.unread[-1]}, is cut off"] if self.cut_off else []
        if others:
            listed = ", ".join(map(str, others[:8])) + (", ..." if len(others) > 8 else "")
            parts.insert(0, f"line{'s' * (len(others) > 1)} {listed} could not be read")
        skipped = "it is" if len(self.unread) == 1 else "they are"
        words = " and ".join(parts)
        return f"{words[0].upper()}{words[1:]}; {skipped} skipped, and everything else is read."


def record_event(line: str) -> RecordEvent:
    """Return the event that a line of a record tells. Raises ValueError where it tells none."""
    try:
        entry = json.loads(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(entry, dict) or entry.get("event") not in (GUESS, CHECK, VISIT):
        raise ValueError(f"not an event: {line[:40]!r}")
    kind, name, at = entry["event"], entry.get("name"), entry.get("at")
    choice, right = entry.get("choice", ""), entry.get("right", False)
    if not (isinstance(name, str) and isinstance(at, str) and isinstance(choice, str) and isinstance(right, bool)):
        raise ValueError(f"not an event: {line[:40]!r}")
    when = datetime.fromisoformat(at)
    return RecordEvent(kind, name, when if when.tzinfo else when.replace(tzinfo=UTC), choice, right)


def read_record_text(content: bytes) -> RecordText:
    """Read everything that can be read of a record; tell which lines could not."""
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    events, unread, newer = [], [], False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        try:
            words = text.decode()
            if _FORMAT_KEY in words and _format_of(words):
                newer = newer or _format_of(words) > RECORD_FORMAT
            else:
                events.append(record_event(words))
        except ValueError:
            unread.append(number)
    cut_off = bool(unread) and unread[-1] == len(lines)
    return RecordText(tuple(events), tuple(unread), cut_off, newer)


def _format_of(line: str) -> int:
    """Return the format that a first line names, 0 where it is another line."""
    entry = json.loads(line)
    number = entry.get(_FORMAT_KEY, 0) if isinstance(entry, dict) else 0
    return number if isinstance(number, int) else 0


def first_guesses(events: tuple[RecordEvent, ...]) -> dict[str, RecordEvent]:
    """Return the first guess at each question, by its name."""
    first: dict[str, RecordEvent] = {}
    for event in events:
        if event.kind == GUESS:
            first.setdefault(event.name, event)
    return first


def record_path() -> Path | None:
    """Return where the record is kept, None where it is switched off or there is no home folder."""
    said = os.environ.get(RECORD_VARIABLE, "").strip()
    if said.lower() == "off":
        return None
    try:
        if said:
            return Path(said).expanduser()
        path = platformdirs.user_data_path("torch-gradlab", appauthor=False) / "record.jsonl"
    except RuntimeError:  # "~" has no meaning for this user, as in some containers
        return None
    return path if path.is_absolute() else None  # an older platformdirs leaves the "~"


def append_to_record(path: Path, events: Iterable[RecordEvent]) -> None:
    """Append events in one write. Raises OSError where that is not possible; then the file is as before."""
    text = "".join(event.line() for event in events).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path), open(path, "a+b", buffering=0, opener=_private) as file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            text = f'{{"{_FORMAT_KEY}": {RECORD_FORMAT}}}\n'.encode() + text
        else:
            file.seek(0)
            if read_record_text(file.readline()).newer:
                raise OSError(f"{path} was written by a newer gradlab")
            file.seek(size - 1)
            if file.read(1) != b"\n":  # the last write was cut off: what follows begins on a line of its own
                text = b"\n" + text
        if file.write(text) != len(text):  # the disk is full
            file.truncate(size)
            raise OSError(f"no space left for {path}")


def delete_record(path: Path) -> None:
    """Delete the record. Raises OSError where that is not possible."""
    with _locked(path):  # the empty lock file stays: another kernel may be waiting for it
        path.unlink(missing_ok=True)


def _locked(path: Path) -> filelock.BaseFileLock:
    return filelock.FileLock(path.with_name(path.name + ".lock"), timeout=_LOCK_SECONDS)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class LearnerRecord:
    """The record as a kernel sees it: what is in the file, and what this kernel could not write yet."""

    def __init__(self, path: Callable[[], Path | None] = record_path) -> None:
        """``path`` returns where the file is, None to keep everything in the kernel."""
        self._path = path
        self._unwritten: list[RecordEvent] = []
        self._visits: dict[str, datetime] = {}
        self._refused = False

    def add(self, kind: str, name: str, choice: str = "", right: bool = False) -> None:
        """Write down what the learner did just now, or keep it in the kernel where it cannot be written."""
        with lock:
            self._unwritten.append(RecordEvent(kind, name, datetime.now(UTC), choice, right))
            path = self._path()
            if path is None:
                return
            try:
                append_to_record(path, self._unwritten)
            except (OSError, NotImplementedError):  # also filelock's Timeout; a folder without locks is the last
                self._refused = True
            else:
                self._unwritten.clear()
                self._refused = False

    def visit(self, notebook: str) -> None:
        """Note that the learner is in this notebook, once a minute at most. Minutes are counted from that."""
        if self._path() is None:
            return
        now, last = datetime.now(UTC), self._visits.get(notebook)
        if last is None or now - last > _BETWEEN_VISITS:
            self._visits[notebook] = now
            self.add(VISIT, notebook)

    def read(self) -> RecordText:
        """Return all that is recorded, here and in the file."""
        with lock:
            found = RecordText()
            path = self._path()
            if path is not None:
                try:
                    found = read_record_text(path.read_bytes())
                except FileNotFoundError:
                    pass
                except OSError:
                    self._refused = True
            events = (*found.events, *self._unwritten)
            return RecordText(events, found.unread, found.cut_off, found.newer)

    def where(self) -> str:
        """Say in one sentence where the record is kept."""
        path = self._path()
        if path is None:
            off = os.environ.get(RECORD_VARIABLE, "").strip().lower() == "off"
            why = f"{RECORD_VARIABLE} is off" if off else "You have no home folder here"
            return f"{why}: what you do is kept only as long as this kernel runs."
        if self._refused:
            return f"{path} cannot be written: what you do is kept only as long as this kernel runs."
        return f"It is kept in {path}, on this machine only. `gradlab guesses delete` deletes it, to start again."

    @property
    def kept(self) -> bool:
        """Whether what was done is in the file; False where it could not be written, or is not to be."""
        return self._path() is not None and not self._refused


# A kernel is one learner. A cell that is run again makes a new Prediction or Exercise, which must find the record:
# so this outlives them. It holds what could not be written.
RECORD = LearnerRecord()

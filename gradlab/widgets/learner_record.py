"""The record of a learner: guesses and checked exercises, one line of JSON each, in one file on this machine.

All notebooks and kernels of a learner append to the same file, each event in one write under a lock. What cannot be
written is kept as long as the kernel runs and is written with the next event that can be.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import platformdirs

with warnings.catch_warnings():  # without fcntl it says that it locks by the existence of a file, which will do
    warnings.filterwarnings("ignore", "only soft file lock")
    import filelock

from .._process import lock

RECORD_VARIABLE = "GRADLAB_RECORD"
"""The environment variable with the path of the record; ``off`` keeps nothing on disk."""

GUESS, CHECK = "guess", "check"
_FORMAT_KEY = "gradlab record"
_LOCK_SECONDS = 2.0  # a write takes a millisecond; longer than this means that locks do not work in this folder


@dataclass(frozen=True)
class RecordEvent:
    """Something that a learner did. It names a question or an exercise, and nobody."""

    kind: str
    """``"guess"``, or ``"check"`` of an exercise."""
    name: str
    """``"03/where-do-the-weights-go"`` or ``"period_of"``."""
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
        return json.dumps({**entry, "right": self.right}, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class RecordText:
    """What a record holds: its events in the order of its lines, and the lines that could not be read."""

    events: tuple[RecordEvent, ...] = ()
    unread: tuple[int, ...] = ()

    @property
    def trouble(self) -> str:
        """One sentence about what could not be read, "" where everything could."""
        if not self.unread:
            return ""
        many = len(self.unread) > 1
        listed = ", ".join(map(str, self.unread[:8])) + (", ..." if len(self.unread) > 8 else "")
        return (
            f"Line{'s' * many} {listed} could not be read; {'they are' if many else 'it is'} skipped, "
            "and everything else is read."
        )


def record_event(line: str) -> RecordEvent | None:
    """Return the event that a line of a record tells; None for the first line, and for an event of another kind.

    Raises ValueError for any other line.
    """
    try:
        entry = json.loads(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(entry, dict) or not {"event", _FORMAT_KEY} & entry.keys():
        raise ValueError(f"not an event: {line[:40]!r}")
    kind, name, at = (entry.get(key) for key in ("event", "name", "at"))
    if kind not in (GUESS, CHECK):
        return None
    choice, right = entry.get("choice", ""), entry.get("right", False)
    if not (isinstance(name, str) and isinstance(at, str) and isinstance(choice, str) and isinstance(right, bool)):
        raise ValueError(f"not an event: {line[:40]!r}")
    when = datetime.fromisoformat(at)
    return RecordEvent(kind, name, when if when.tzinfo else when.replace(tzinfo=UTC), choice, right)


def read_record_text(content: bytes) -> RecordText:
    """Read everything that can be read of a record; tell which lines could not."""
    events, unread = [], []
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if text := line.strip():
            try:
                event = record_event(text.decode())
            except ValueError:
                unread.append(number)
            else:
                events += [event] if event else []
    return RecordText(tuple(events), tuple(unread))


def first_guesses(events: Iterable[RecordEvent]) -> dict[str, RecordEvent]:
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
            text = f'{{"{_FORMAT_KEY}": 1}}\n'.encode() + text
        else:
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
            return RecordText((*found.events, *self._unwritten), found.unread)

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


class Guesses:
    """What is guessed in this kernel, and what was guessed before it. The first guess at a question counts."""

    def __init__(self, record: LearnerRecord | None = None) -> None:
        """Start with none in this kernel. Without a record they are kept here only."""
        self._made: dict[str, str] = {}
        self._record = record or LearnerRecord(lambda: None)

    def get(self, question: str) -> str | None:
        """Return the guess in this kernel at the question with this name, None before it is made."""
        return self._made.get(question)

    def earlier(self, question: str) -> RecordEvent | None:
        """Return the first guess at this question that is on record, None where there is none."""
        return self._first().get(question)

    def record(self, question: str, guess: str, right: bool) -> None:
        """Keep the guess for a question, here and in the record."""
        self._made[question] = guess
        self._record.add(GUESS, question, guess, right)

    def recall(self, question: str, guess: str) -> None:
        """Keep a guess that is on record already as the one of this kernel."""
        self._made[question] = guess

    def score_text(self, notebook: str) -> str:
        """How many first guesses were right, in words: in the notebook, and in the series where that is more."""
        first = self._first()
        here = [event.right for name, event in first.items() if name.partition("/")[0] == notebook]
        if len(here) == len(first):
            return f"Your guesses so far: {sum(here)} of {len(here)} right."
        right = sum(event.right for event in first.values())
        return (
            f"Your guesses so far: {sum(here)} of {len(here)} right in this notebook, "
            f"{right} of {len(first)} in the series."
        )

    def _first(self) -> dict[str, RecordEvent]:
        return first_guesses(self._record.read().events)


# A kernel is one learner. A cell that is run again makes a new Prediction or Exercise, which must find the record and
# the guess: so these outlive them. The record holds what could not be written.
RECORD = LearnerRecord()
GUESSES = Guesses(RECORD)

"""The record of a learner: what is written is there again, whoever else writes, and however the file was cut."""

from __future__ import annotations

import getpass
import json
import os
import platform
import socket
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradlab.widgets import learner_record
from gradlab.widgets.learner_record import (
    CHECK,
    GUESS,
    LearnerRecord,
    RecordEvent,
    RecordText,
    append_to_record,
    delete_record,
    read_record_text,
    record_event,
)

NOW = datetime(2026, 11, 22, 17, 20, 22, 123456, tzinfo=UTC)
EVENTS = (
    RecordEvent(GUESS, "03/where-do-the-weights-go", NOW + timedelta(seconds=5), "Off to \u221e\u2026\n", False),
    RecordEvent(CHECK, "period_of", NOW + timedelta(minutes=2), right=True),
    RecordEvent(GUESS, "01/which-are-leaves", NOW + timedelta(days=1), 'only "w"', True),
)


def started(code: str, path: Path) -> subprocess.Popen[str]:
    """Another Python, as each kernel is one; it waits for a line if the code reads one."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"GRADLAB_RECORD": str(path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return out


def at(path: Path) -> LearnerRecord:
    return LearnerRecord(lambda: path)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "record.jsonl"
    for event in EVENTS:
        append_to_record(path, [event])
    found = read_record_text(path.read_bytes())
    assert found.events == EVENTS
    assert found.trouble == ""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0]) == {"gradlab record": 1}
    assert len(lines) == 1 + len(EVENTS)
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    delete_record(path)
    assert not path.exists()
    delete_record(path)  # there is none: nothing happens
    append_to_record(path, EVENTS[:1])
    assert read_record_text(path.read_bytes()).events == EVENTS[:1]


def test_two_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    code = """
from gradlab.widgets import RECORD
import sys
sys.stdin.readline()
for number in range(300):
    RECORD.add("guess", f"03/NAME-{number}", "x" * (number % 90), number % 2 == 0)
print(RECORD.kept)
"""
    tabs = [started(code.replace("NAME", name), path) for name in ("one", "other")]
    for tab in tabs:  # both have loaded by the time that the second is told to begin
        assert tab.stdin is not None
        tab.stdin.write("go\n")
        tab.stdin.flush()
    assert [said(tab) for tab in tabs] == ["True\n", "True\n"]
    found = read_record_text(path.read_bytes())
    assert found.trouble == ""
    for name in ("one", "other"):
        mine = [(event.name, len(event.choice)) for event in found.events if f"/{name}-" in event.name]
        assert mine == [(f"03/{name}-{number}", number % 90) for number in range(300)]
    assert path.read_bytes().count(b"gradlab record") == 1


def test_a_file_cut_at_any_byte_keeps_every_whole_line_and_takes_more(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    append_to_record(whole, EVENTS)
    content = whole.read_bytes()
    later = RecordEvent(GUESS, "05/later", NOW, "after the cut", True)
    path = tmp_path / "cut.jsonl"
    for length in range(len(content) + 1):
        path.write_bytes(content[:length])
        # A line that lacks only its end is whole; the first names the format.
        complete = content[: length + 1].count(b"\n") - 1
        kept = EVENTS[: max(complete, 0)]
        found = read_record_text(path.read_bytes())
        assert found.events == kept, content[:length]
        part = content[:length].rpartition(b"\n")[2]
        broken = bool(part) and not content[length:].startswith(b"\n") and length < len(content)
        assert bool(found.trouble) == broken
        if broken:
            number = content[:length].count(b"\n") + 1
            assert found.trouble == f"Line {number} could not be read; it is skipped, and everything else is read."
        append_to_record(path, [later])
        assert read_record_text(path.read_bytes()).events == (*kept, later)
        assert bool(read_record_text(path.read_bytes()).unread) == broken
        assert path.read_bytes().startswith(content[:length])  # nothing that was there is taken away


BOM = b"\xef\xbb\xbf"


@given(st.lists(st.one_of(st.sampled_from(EVENTS), st.binary(max_size=40)), max_size=12))
def test_foreign_lines_are_skipped_and_named(parts: list[RecordEvent | bytes]) -> None:
    lines, good, bad = [], [], []
    for part in parts:
        if isinstance(part, RecordEvent):
            lines.append(part.line().encode().rstrip(b"\n"))
            good.append(part)
        else:
            foreign = part.replace(b"\n", b" ")
            lines.append(foreign)
            text = foreign.removeprefix(BOM) if len(lines) == 1 else foreign  # an editor may have put one there
            if text.strip():
                bad.append(len(lines))
    found = read_record_text(b"".join(line + b"\n" for line in lines))
    assert found.events == tuple(good)
    assert found.unread == tuple(bad)
    assert all(str(number) in found.trouble for number in bad[:8])


AT = '"at": "2026-11-22T17:20:22+00:00"'
NO_EVENTS = ["null", "[" * 100_000, '{"event": "guess"}', '{"event": "guess", "name": "a", "at": "yesterday"}']
NO_EVENTS += [f'{{"event": "guess", "name": 3, {AT}}}', f'{{"event": "guess", "name": "a", {AT}, "right": 1}}']


@pytest.mark.parametrize("line", NO_EVENTS, ids=lambda line: line[:30])
def test_a_line_that_is_no_event_is_refused(line: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of any kind: all are told as a line that could not be read
        record_event(line)


@pytest.mark.parametrize("line", ['{"gradlab record": 1}', '{"event": "visit", "name": "03"}', '{"event": ["guess"]}'])
def test_an_entry_of_another_kind_is_passed_over(line: str) -> None:
    assert read_record_text(line.encode()) == RecordText()


def test_a_place_that_cannot_be_written_keeps_it_in_the_kernel(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("here a folder is wanted")
    record = at(blocked / "record.jsonl")
    record.add(GUESS, "03/a", "x", True)
    assert [event.name for event in record.read().events] == ["03/a"]
    assert not record.kept
    assert record.where() == (
        f"{blocked / 'record.jsonl'} cannot be written: what you do is kept only as long as this kernel runs."
    )
    blocked.unlink()  # it can be written again: what waited is written with the next event
    record.add(CHECK, "period_of", right=True)
    assert [event.name for event in at(blocked / "record.jsonl").read().events] == ["03/a", "period_of"]
    assert [event.name for event in record.read().events] == ["03/a", "period_of"]
    assert "on this machine only" in record.where()


@pytest.mark.skipif(platform.system() != "Linux", reason="limits the size of a file")
def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    code = """
import os, resource, signal
from gradlab.widgets import RECORD
RECORD.add("guess", "03/a", "x", True)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
size = os.path.getsize(os.environ["GRADLAB_RECORD"])
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, size + 20))
RECORD.add("guess", "03/b", "y", True)
print(size == os.path.getsize(os.environ["GRADLAB_RECORD"]), RECORD.kept, len(RECORD.read().events))
"""
    assert said(started(code, path)) == "True False 2\n"
    assert len(read_record_text(path.read_bytes()).events) == 1


def test_a_lock_that_is_held_for_ever_keeps_it_in_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import filelock

    monkeypatch.setattr(learner_record, "_LOCK_SECONDS", 0.1)
    record = at(tmp_path / "record.jsonl")
    with filelock.FileLock(tmp_path / "record.jsonl.lock"):
        record.add(GUESS, "03/a", "x", True)
        assert not record.kept
    record.add(GUESS, "03/b", "x", True)
    assert [event.name for event in at(tmp_path / "record.jsonl").read().events] == ["03/a", "03/b"]


@pytest.mark.skipif(platform.system() != "Linux", reason="the folder's name is Linux's")
def test_it_lies_in_the_folder_for_data_of_programs_and_names_nobody(tmp_path: Path) -> None:
    code = 'import sys; from gradlab.widgets import RECORD; RECORD.add("guess", "03/a", "x")'
    code += '; assert not {"torch", "ipywidgets"} & set(sys.modules)'
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
    environment.pop("GRADLAB_RECORD")
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    text = (tmp_path / "torch-gradlab" / "record.jsonl").read_text(encoding="utf-8")
    for word in (getpass.getuser(), socket.gethostname(), str(Path.home()), str(tmp_path), str(os.getpid())):
        assert word not in text.replace("gradlab record", "")


@pytest.mark.parametrize("off", ["OFF", None], ids=["off", "no home"])
def test_where_nothing_is_to_be_written_nothing_is_and_one_sentence_says_so(
    off: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home(*_: object, **__: object) -> Path:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    if off:
        monkeypatch.setenv("GRADLAB_RECORD", off)
    else:
        monkeypatch.delenv("GRADLAB_RECORD")
        monkeypatch.setattr("platformdirs.user_data_path", no_home)
    record = LearnerRecord()
    record.add(GUESS, "03/a", "x", True)
    assert [event.name for event in record.read().events] == ["03/a"]
    why = "GRADLAB_RECORD is off" if off else "You have no home folder here"
    assert record.where() == f"{why}: what you do is kept only as long as this kernel runs."
    assert list(tmp_path.iterdir()) == []

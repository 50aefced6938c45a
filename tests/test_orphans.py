"""Programs that start processes leave none of them, however they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import gradlab

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="sends the signals of Linux and macOS")]
ROOT = Path(gradlab.__file__).parents[1]
HANGS = "import os, time\nopen(f'begun-{os.getpid()}', 'w').close()\ntime.sleep(3600)\n"
IN_PROCESSES = """
import multiprocessing, runpy
if __name__ == "__main__":
    context = multiprocessing.get_context("{}")
    for _ in range(2):
        context.Process(target=runpy.run_path, args=("hangs.py",)).start()
"""
COURSE = "import gradlab.course.processes as p; p.{}('hangs.py', seconds=600)"
# The instrument runs two ranks; each writes a file when it has begun, in the test's folder.
INSTRUMENT = """
import importlib.resources, os, pathlib
from gradlab.course.instruments import two_ranks_numbers as numbers
here = pathlib.Path.cwd()
(here / "two_ranks_script.py").write_text(f"import os\\nos.chdir({str(here)!r})\\n" + (here / "hangs.py").read_text())
numbers.files = lambda package: here
numbers.run_ranks()
"""
PROGRAMS = {
    "launch": ["-c", COURSE.format("launch")],
    "two_ranks": ["-c", INSTRUMENT],
    "site": ["-m", "gradlab", "site", "out"],
    "doctor, fork": ["-m", "gradlab", "doctor", "fork.py"],
    "doctor, spawn": ["-m", "gradlab", "doctor", "spawn.py"],
    "doctor torchrun": ["-m", "gradlab", "doctor", "torchrun", "--standalone", "--nproc-per-node=2", "hangs.py"],
}
SIGNALS = {
    "Ctrl-C": [signal.SIGINT],
    "Ctrl-C twice": [signal.SIGINT, signal.SIGINT],
    "SIGTERM": [signal.SIGTERM],
    "SIGKILL": [signal.SIGKILL],
}
DAILY = [
    ("launch", "Ctrl-C twice"),
    ("doctor, fork", "SIGKILL"),
    ("doctor, spawn", "Ctrl-C twice"),
]
NIGHTLY = [
    ("site", "SIGTERM"),
    ("two_ranks", "Ctrl-C"),
    ("launch", "SIGTERM"),
    ("doctor, fork", "SIGTERM"),
    ("doctor torchrun", "SIGTERM"),
]
CASES = [*DAILY, *(pytest.param(*case, marks=pytest.mark.nightly) for case in NIGHTLY)]
EXIT_LIMIT_S = 60.0
"""Limit for the exit of processes after the program that started them; one may still be importing PyTorch."""
MARK = "GRADLAB_TEST_FAMILY"


class Family:
    """A program and all its descendants, identified by an environment variable."""

    def __init__(self, arguments: list[str], folder: Path) -> None:
        self.mark, self.folder = uuid.uuid4().hex, folder
        self.temporary = Path(tempfile.mkdtemp(prefix="t"))  # in tmp_path the path of a socket would be too long
        environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(self.temporary), MARK: self.mark}
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
        try:
            command, quiet = [sys.executable, *arguments], subprocess.DEVNULL
            self.program = subprocess.Popen(command, cwd=folder, env=environment, stdout=quiet, stderr=quiet)
        finally:
            signal.signal(signal.SIGINT, before)

    def running(self) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if self._belongs(process)]

    def _belongs(self, process: psutil.Process) -> bool:
        try:
            ended = process.status() == psutil.STATUS_ZOMBIE
            return not ended and process.environ().get(MARK) == self.mark
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False

    def has_begun(self, name: str) -> bool:
        if name == "site":  # the program, a worker or more, and multiprocessing's tracker
            return len(self.running()) >= 3
        return len(list(self.folder.glob("begun-*"))) == 2

    def end(self) -> None:
        for process in self.running():
            process.kill()
        self.program.wait()


@pytest.fixture
def families() -> Iterator[list[Family]]:
    started: list[Family] = []
    yield started
    for family in started:
        family.end()


@pytest.mark.parametrize(("name", "end"), CASES)
def test_no_process_is_left(name: str, end: str, families: list[Family], tmp_path: Path) -> None:
    if name == "site" and not (ROOT / "site").is_dir():
        pytest.skip("needs a clone of the repository")
    (tmp_path / "hangs.py").write_text(HANGS)
    for method in ("fork", "spawn"):
        (tmp_path / f"{method}.py").write_text(IN_PROCESSES.format(method))
    family = Family(PROGRAMS[name], tmp_path)
    families.append(family)
    until = time.monotonic() + 120
    while not family.has_begun(name):
        assert family.program.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)
    assert len(family.running()) >= 3
    for number in SIGNALS[end]:
        family.program.send_signal(number)
        time.sleep(0.3)
    family.program.wait(60)
    ended = time.monotonic()
    while (left := family.running()) and time.monotonic() < ended + EXIT_LIMIT_S:
        time.sleep(0.1)
    assert left == []
    if name == "launch":
        assert list(family.temporary.glob("gradlab-*")) == []
    if name == "site" and end != "SIGKILL":
        assert list(tmp_path.glob(".out-*")) == []

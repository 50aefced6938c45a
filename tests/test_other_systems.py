"""What stands in for systems that the tests do not run on: Windows' names only, and an image with hardly a program.

Nothing here has run on Windows. The program takes away what Windows lacks, so that a line that needs it fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the program prints where there is no HOME, no PATH, and where text is cp1252 as on Windows in the West."""
    work, temporary = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("temporary")
    bare = {
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)]),
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "cp1252",
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(temporary),
    }
    command = [sys.executable, "-X", "warn_default_encoding", str(HERE / "without_posix.py"), str(work)]
    done = subprocess.run(command, env=bare, cwd=work, capture_output=True, encoding="cp1252")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_each_module_can_be_imported_and_a_lab_drawn(printed: list[str]) -> None:
    files = [path for path in (HERE.parent / "gradlab").rglob("*.py") if path.parent.name != "gradlab"]
    modules = next(int(line.split()[1]) for line in printed if line.startswith("modules:"))
    assert modules >= len(files)
    assert "lab: lab.svg lab.png" in printed


def test_commands_print_where_not_every_letter_can_be_written(printed: list[str]) -> None:
    assert "error: missing-zero-grad  at ?.py:6" in printed
    assert [line for line in printed if line.startswith(("doctor:", "forecast:", "exercise:"))] == [
        "doctor: 1",  # findings
        "forecast: 1",  # does not fit
        "exercise: True",
    ]


def test_processes_meet_print_say_where_they_stand_and_end(printed: list[str]) -> None:
    (ran,) = [line for line in printed if line.startswith("ran:")]
    assert ran.count(r"\xd7 \u2192 [3.0, 3.0]") == 2
    for words in (
        "rank 1 failed: OSError: disk full",
        'at line 9 of ranks.py: raise OSError("disk full")',
        "rank 0 had not finished",
        "at line 10 of ranks.py: time.sleep(3600)",
        "No process is left.",
    ):
        assert words in ran, ran
    assert "left: [] []" in printed

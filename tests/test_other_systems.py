"""What stands in for systems that the tests do not run on: Windows' names only, and a browser's tab.

Nothing here has run on Windows or in a browser. Each program takes away what is lacking there, so that a line that
needs it fails.
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


@pytest.fixture(scope="module")
def in_tab(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the program prints that has one thread and one process: each line's name and the rest of it."""
    work = tmp_path_factory.mktemp("tab")
    given = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)]),
        "PYTHONIOENCODING": "utf-8",
        "OMP_NUM_THREADS": "1",
        "GRADLAB_RECORD": str(work / "record.jsonl"),
    }
    command = [sys.executable, str(HERE / "without_processes.py"), str(work)]
    done = subprocess.run(command, env=given, cwd=work, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)


def test_each_module_can_be_imported_without_processes(in_tab: dict[str, str]) -> None:
    files = [path for path in (HERE.parent / "gradlab").rglob("*.py") if path.parent.name != "gradlab"]
    assert int(in_tab["modules"]) >= len(files)
    assert in_tab["distributed"] == "False"


def test_runs_labs_and_replays_need_no_thread(in_tab: dict[str, str]) -> None:
    assert in_tab["ledger"] == "12 12"  # bytes: two weights and a bias, and their gradients
    assert in_tab["run"] == "3 updates"
    assert in_tab["lab"] == "Step 7 applied batches 4 to 6 again: .grad was not cleared."
    assert in_tab["message"] == "2 frames, None"  # and no buffers
    assert in_tab["still"] == "lab.png lab.svg"
    assert in_tab["replay"] == "replay.html"
    assert in_tab["compare"] == "2 rows"


def test_instruments_answer_without_processes(in_tab: dict[str, str]) -> None:
    assert "predicted 19.79, measured 19.79" in in_tab["swing"]
    for name in ("loss_scale", "peak", "ring_of_orders"):
        assert in_tab[name].endswith("."), in_tab[name]


def test_the_doctor_and_exercises_need_no_processes(in_tab: dict[str, str]) -> None:
    assert in_tab["watch"] == "missing-zero-grad"
    assert in_tab["doctor"] == "1"  # findings
    assert in_tab["patient"] == "It stops in line 2 with ZeroDivisionError: division by zero."
    assert in_tab["exercise"] == "True"
    assert in_tab["record"] == "guess check True"


def test_what_needs_processes_or_threads_says_so(in_tab: dict[str, str]) -> None:
    assert in_tab["seconds"] == "watch: seconds needs a thread, and no thread can be started here; use updates"
    for name in ("launch", "torchrun", "two_ranks"):
        assert in_tab[name].startswith("Processes cannot be started here: "), in_tab[name]

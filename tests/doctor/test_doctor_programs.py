"""Whole programs under ``python -m gradlab doctor``: the same results, bit for bit, and no false alarm.

Each program prints a line ``digest: ...`` over what it has learned.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parents[1] / "loops" / "programs").rglob("*.py"))


def run(folder: Path, *asked: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    return subprocess.run(
        [sys.executable, *asked], capture_output=True, text=True, timeout=300, check=False, cwd=folder, env=environment
    )


def digest(done: subprocess.CompletedProcess[str]) -> str:
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("digest:"))
    return line


def test_there_are_programs():
    assert len(PROGRAMS) >= 5


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_prints_the_same_with_the_doctor_and_gets_no_word(path, tmp_path):
    bare = run(tmp_path, str(path))
    assert bare.returncode == 0, bare.stderr
    watched = run(tmp_path, "-m", "gradlab", "doctor", str(path))
    assert digest(watched) == digest(bare)
    report = watched.stdout.rpartition("\n\n")[2] if "No findings." in watched.stdout else watched.stdout
    assert watched.returncode == 0, report
    assert "failed" not in report
    assert watched.stderr == bare.stderr

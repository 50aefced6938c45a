"""Whole programs under ``python -m gradlab doctor``: the same results, bit for bit, and no false alarm.

Each program prints a line ``digest: ...`` of its results.
"""

from __future__ import annotations

import contextlib
import runpy
import sys
from pathlib import Path

import pytest
from sampling import every

from gradlab.__main__ import main

pytestmark = pytest.mark.slow

PROGRAMS = sorted((Path(__file__).parents[1] / "corpus" / "programs").rglob("*.py"))


@pytest.mark.parametrize("path", every(6, PROGRAMS), ids=lambda path: path.stem)
def test_a_program_prints_the_same_and_gets_no_word(path, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    with contextlib.suppress(SystemExit):
        runpy.run_path(str(path), run_name="__main__")
    bare, errors = capfd.readouterr()
    assert "digest:" in bare
    code = main(["doctor", str(path)])
    watched, watched_errors = capfd.readouterr()
    report = watched.removeprefix(bare)
    assert watched.startswith(bare)
    assert report.startswith("\nNo findings. Watched ") or report.startswith("\n1 finding. "), report
    assert code == 0, report
    assert "failed" not in report
    assert watched_errors == errors

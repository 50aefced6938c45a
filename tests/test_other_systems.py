"""Stand-ins for systems on which the tests do not run: with the names of Windows only, and a browser tab.

Nothing here has run on Windows or in a browser. ``other_system.py`` removes what they lack; code that needs it fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODULES = [path for path in (HERE.parent / "gradlab").rglob("*.py") if path.parent.name != "gradlab"]


def printed_on(system: str, folder: Path, encoding: str, variables: dict[str, str], *options: str) -> dict[str, str]:
    """Run the program; return its output lines by their first words."""
    paths = {"PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *options, str(HERE / "other_system.py"), system, str(folder)]
    environment = {**variables, **paths, "PYTHONIOENCODING": encoding}
    result = subprocess.run(command, env=environment, cwd=folder, capture_output=True, encoding=encoding)
    assert result.returncode == 0, result.stdout + result.stderr
    lines = dict(line.split(": ", 1) for line in result.stdout.splitlines() if ": " in line)
    assert int(lines["modules"]) >= len(MODULES)
    assert (lines["lab"], lines["exercise"]) == ("lab.svg lab.png", "True")
    assert lines["doctor"] == "1"  # findings
    return lines


@pytest.mark.nightly
def test_windows_names_are_enough_and_text_in_cp1252(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also without HOME and PATH; processes communicate, report their lines, and end."""
    temporary = str(tmp_path_factory.mktemp("temporary"))
    bare = {"PYTHONUTF8": "0", "TMPDIR": temporary}
    lines = printed_on("windows", tmp_path_factory.mktemp("work"), "cp1252", bare, "-X", "warn_default_encoding")
    assert lines["forecast"] == "1"  # does not fit
    ran = lines["ran"]
    assert ran.count(r"\xd7 \u2192 [3.0, 3.0]") == 2
    for phrase in (
        "rank 1 failed: OSError: disk full",
        'at line 9 of ranks.py: raise OSError("disk full")',
        "rank 0 had not finished",
        "at line 10 of ranks.py: time.sleep(3600)",
        "No process is left.",
    ):
        assert phrase in ran, ran
    assert lines["left"] == "[] []"


@pytest.mark.nightly
def test_one_thread_and_one_process_are_enough(tmp_path: Path) -> None:
    lines = printed_on("tab", tmp_path, "utf-8", dict(os.environ))
    assert lines["distributed"] == "False"
    assert lines["ledger"] == "12 12"  # bytes: two weights and a bias, and their gradients
    assert lines["alarm"] == "Step 6 applied batches 4 to 5 again: .grad was not cleared."
    assert lines["replay"] == "replay.html"
    assert lines["watch"] == "missing-zero-grad"
    assert lines["seconds"] == "watch: seconds needs a thread, and no thread can be started here; use updates"
    assert lines["launch"].startswith("Processes cannot be started here: "), lines["launch"]

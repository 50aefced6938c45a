"""``python -m gradlab doctor`` on a script that a notebook holds as text."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class CommandResult:
    """What a command printed, and its exit code."""

    command: str
    printed: str
    code: int

    def __repr__(self) -> str:
        return f"$ {self.command}\n{self.printed.rstrip()}\n\nexit code {self.code}"


def doctor_command(script: str | None, *options: str, name: str = "train.py") -> CommandResult:
    """Write a script to a temporary folder and run ``python -m gradlab doctor [options] train.py`` there.

    ``script`` is its text; None writes no file, to see what happens then.
    """
    if script is not None and not isinstance(script, str):
        raise TypeError(f"doctor_command: script must be a text, got {script!r}")
    found = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory(prefix="gradlab-") as folder:
        if script is not None:
            Path(folder, name).write_text(script, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "gradlab", "doctor", *options, name],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": found},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    command = " ".join(["python -m gradlab doctor", *options, name])
    return CommandResult(command, done.stdout + (done.stderr if done.returncode == 2 else ""), done.returncode)

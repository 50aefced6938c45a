"""Helpers for notebooks: ``attempt`` makes a call that may fail, and ``doctor_command`` runs the doctor on a script."""

from __future__ import annotations

import io
import tempfile
import warnings
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._process import main_thread
from ..doctor import run_script


def attempt(call: Callable[..., Any], *arguments: Any) -> None:
    """Make a call, and print "no error" or, after a RuntimeError or ValueError, the error's type and first sentence."""
    try:
        call(*arguments)
    except (RuntimeError, ValueError) as error:
        print(f"{type(error).__name__}: {str(error).split('. ')[0]}")
    else:
        print("no error")


@dataclass(frozen=True)
class CommandResult:
    """The output and the exit code of a command, which a notebook displays as a terminal would."""

    command: str
    printed: str
    code: int

    def __repr__(self) -> str:
        return f"$ {self.command}\n{self.printed.rstrip()}\n\nexit code {self.code}"


def doctor_command(script: str) -> CommandResult:
    """Run ``python -m gradlab doctor train.py``, with ``script`` as train.py, and return the output and exit code.

    The command runs in a temporary folder. It runs in this process, because starting another Python takes seconds.
    """
    printed = io.StringIO()
    with main_thread.hold(), tempfile.TemporaryDirectory(prefix="gradlab-") as folder, chdir(folder):
        Path("train.py").write_text(script, encoding="utf-8")
        with warnings.catch_warnings(action="ignore"), redirect_stdout(printed), redirect_stderr(printed):
            code = run_script("train.py", form="text")
    return CommandResult("python -m gradlab doctor train.py", printed.getvalue(), code)

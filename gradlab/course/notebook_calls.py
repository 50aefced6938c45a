"""Helpers that notebooks call in one line: ``attempt`` for a call that may fail, and ``doctor_command``."""

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
    """Call a function, and print "no error", or the type and first sentence of its RuntimeError or ValueError."""
    try:
        call(*arguments)
    except (RuntimeError, ValueError) as error:
        print(f"{type(error).__name__}: {str(error).split('. ')[0]}")
    else:
        print("no error")


@dataclass(frozen=True)
class CommandResult:
    """The output of a command and its exit code, displayed as in a terminal."""

    command: str
    printed: str
    code: int

    def __repr__(self) -> str:
        return f"$ {self.command}\n{self.printed.rstrip()}\n\nexit code {self.code}"


def doctor_command(script: str) -> CommandResult:
    """Run ``python -m gradlab doctor train.py`` on a file with the source ``script``, and return its result.

    The command runs in a temporary folder and in this process, because starting another Python would take seconds.
    """
    printed = io.StringIO()
    with main_thread.hold(), tempfile.TemporaryDirectory(prefix="gradlab-") as folder, chdir(folder):
        Path("train.py").write_text(script, encoding="utf-8")
        with warnings.catch_warnings(action="ignore"), redirect_stdout(printed), redirect_stderr(printed):
            code = run_script("train.py", form="text")
    return CommandResult("python -m gradlab doctor train.py", printed.getvalue(), code)

"""``python -m gradlab doctor`` on a script that a notebook holds as text."""

from __future__ import annotations

import contextlib
import io
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

from .._process import lock
from ..doctor import run_script


@dataclass(frozen=True)
class CommandResult:
    """What a command printed, and its exit code."""

    command: str
    printed: str
    code: int

    def __repr__(self) -> str:
        return f"$ {self.command}\n{self.printed.rstrip()}\n\nexit code {self.code}"


def doctor_command(script: str | None, *options: str, name: str = "train.py") -> CommandResult:
    """Do what ``python -m gradlab doctor [--json] train.py`` does with a script in a temporary folder.

    ``script`` is its text; None writes no file, to see what happens then. It runs in this Python: starting another one
    would take seconds.
    """
    if script is not None and not isinstance(script, str):
        raise TypeError(f"doctor_command: script must be a text, got {script!r}")
    if not set(options) <= {"--json"}:
        raise ValueError(f"doctor_command: options must be '--json' or none, got {options!r}")
    printed, errors = io.StringIO(), io.StringIO()
    with lock, tempfile.TemporaryDirectory(prefix="gradlab-") as folder, contextlib.chdir(folder):
        if script is not None:
            Path(name).write_text(script, encoding="utf-8")
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(errors),
        ):
            warnings.simplefilter("ignore")
            code = run_script(name, form="json" if options else "text")
    command = " ".join(["python -m gradlab doctor", *options, name])
    return CommandResult(command, printed.getvalue() + (errors.getvalue() if code == 2 else ""), code)

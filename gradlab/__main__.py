"""The command line: commands such as ``gradlab forecast llama-8b --on H100`` and ``gradlab doctor train.py``.

``python -m gradlab`` runs the same commands, even if the environment's scripts are not on PATH. If an argument is
invalid, or PyTorch is missing or too old, the command prints a one-line error and exits with code 2. After Ctrl-C, it
exits with code 130. The modules of ``commands`` document the other exit codes.
"""

from __future__ import annotations

import argparse
import io
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NoReturn

from . import __version__
from ._torch import UnsupportedTorchError
from .commands import BAD_INPUT, add_all


class _Parser(argparse.ArgumentParser):
    """An argument parser that prints an error on one line, without the usage that --help shows."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; ``arguments`` defaults to ``sys.argv[1:]``."""
    called = "python -m gradlab" if Path(sys.argv[0]).parts[-2:] == ("gradlab", "__main__.py") else "gradlab"
    parser = _Parser(prog=called, description="Shows what happens to .grad, and to memory, in a training loop.")
    parser.add_argument("--version", action="version", version=_versions())
    commands = parser.add_subparsers(dest="command", required=True, metavar="command", parser_class=_Parser)
    add_all(commands)
    for command in commands.choices.values():
        command.add_argument("--version", action="version", version=_versions(), help=argparse.SUPPRESS)
    if isinstance(sys.stdout, io.TextIOWrapper):  # stdout's encoding may not cover every character that is printed
        sys.stdout.reconfigure(errors="replace")
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except (ValueError, TypeError, UnsupportedTorchError) as error:
        problem = " ".join(str(error).split()).removeprefix("forecast: ")
        print(f"{parser.prog} {options.command}: {problem}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return 130  # the exit code that shells report for an interrupted program


def _versions() -> str:
    """Return the versions of gradlab, torch and Python as a line of text for bug reports, without importing torch."""
    try:
        torch = version("torch")
    except PackageNotFoundError:
        torch = "not installed"
    return f"gradlab {__version__} (torch {torch}, Python {platform.python_version()})"


if __name__ == "__main__":
    raise SystemExit(main())

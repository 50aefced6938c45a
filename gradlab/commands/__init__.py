"""The commands of ``gradlab``, one in each module of this package.

A module has ``add_forecast(parsers)``, which declares the command ``forecast`` and its options and sets, by
``set_defaults(run=...)``, the function that takes the parsed options and returns the exit code. A ValueError or
TypeError that it raises is printed in one line. A command imports torch when it runs, so that ``--help`` is quick.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["BAD_INPUT", "add_all"]

BAD_INPUT = 2
"""The exit code of a command whose arguments are invalid."""

Parsers = argparse._SubParsersAction
"""The parsers of the commands; one is added by ``parsers.add_parser(name, help=...)``."""


def add_all(parsers: Parsers[Any]) -> None:
    """Add every command, in alphabetical order."""
    modules = (path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")
    globals_ = {name: value for each in modules for name, value in vars(import_module(f".{each}", __package__)).items()}
    for name in sorted(globals_):
        if name.startswith("add_"):
            globals_[name](parsers)

"""The commands of ``gradlab``, one in each module of this package.

In the module ``forecast``, for example, the function ``add_forecast(parsers)`` declares the command and its options.
With ``set_defaults(run=...)``, it sets the function that takes the parsed options and returns the exit code. A
ValueError or TypeError that this function raises is printed on one line. Commands import torch only when they run, so
that ``--help`` is fast.
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
"""The type of the object whose method ``add_parser(name, help=...)`` adds a command."""


def add_all(parsers: Parsers[Any]) -> None:
    """Add the parsers of all commands, in alphabetical order."""
    modules = (path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")
    globals_ = {name: value for each in modules for name, value in vars(import_module(f".{each}", __package__)).items()}
    for name in sorted(globals_):
        if name.startswith("add_"):
            globals_[name](parsers)

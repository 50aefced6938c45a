"""The commands of ``gradlab``, one in each module of this package.

In the module ``forecast``, for example, ``add_forecast(parsers)`` declares the command and its options. It also sets
``run``, the function that takes the parsed options and returns the exit code. A ValueError or TypeError that ``run``
raises is printed on one line. Commands import torch only when they run, so that ``--help`` is fast.
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
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        getattr(import_module(f".{path.stem}", __package__), f"add_{path.stem}")(parsers)

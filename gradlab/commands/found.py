"""Find the commands.

The module ``forecast`` has ``add_forecast(parsers)``, which declares the command and its options and names, by
``set_defaults(run=...)``, the function that gets the parsed options and returns the exit code. A ValueError or
TypeError that it raises is told in one line. What a command needs of torch it imports when it runs, so that ``--help``
is quick.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

BAD_INPUT = 2
"""The exit code where a command was asked for something that it cannot do."""

Parsers = argparse._SubParsersAction
"""Where a command adds its own: ``parsers.add_parser(name, help=...)``."""

_NOT_COMMANDS = ("__init__", "found", "outputs")


def add_all(parsers: Parsers[Any]) -> None:
    """Add every command, in the order of the alphabet."""
    for name in sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in _NOT_COMMANDS):
        getattr(import_module(f".{name}", __package__), f"add_{name}")(parsers)

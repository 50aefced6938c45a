"""The commands of ``gradlab``, each found by its module being here.

A module has ``add_forecast(parsers)``, which declares the command ``forecast`` and its options and names, by
``set_defaults(run=...)``, the function that gets the parsed options and returns the exit code. A ValueError or
TypeError that it raises is told in one line. What a command needs of torch it imports when it runs, so that ``--help``
is quick.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["BAD_INPUT", "add_all"]

BAD_INPUT = 2
"""The exit code where a command was asked for something that it cannot do."""

Parsers = argparse._SubParsersAction
"""Where a command adds its own: ``parsers.add_parser(name, help=...)``."""


def add_all(parsers: Parsers[Any]) -> None:
    """Add every command, in the order of the alphabet."""
    names = (path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")
    found = {name: add for module in names for name, add in vars(import_module(f".{module}", __package__)).items()}
    for name in sorted(found):
        if name.startswith("add_"):
            found[name](parsers)

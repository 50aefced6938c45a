"""``gradlab doctor``: what is wrong with a script's loop. Exit codes: 0 nothing, 1 findings, 2 it could not be run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .found import Parsers


def add_doctor(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    parser = parsers.add_parser(
        "doctor",
        help="run a training script and say what is wrong with its loop",
        description="Runs a script, unchanged, as python would, and prints what is wrong with its training loop.",
    )
    parser.set_defaults(run=_run)
    parser.add_argument("--json", action="store_true", help="print the report alone, as JSON")
    parser.add_argument("script", help="the path of a Python script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script itself is given")


def _run(options: argparse.Namespace) -> int:
    from ..doctor import run_script  # torch, at last

    return run_script(options.script, options.arguments, as_json=options.json)

"""``gradlab worksheet``: bets and exit tickets to print. Exit codes: 0 done, 2 it could not be made."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .outputs import add_handout_options, write_handout

if TYPE_CHECKING:
    from .found import Parsers


def add_worksheet(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    parser = parsers.add_parser(
        "worksheet",
        help="for a class to print: the bets of each core to tick, and an exit ticket of five questions",
        description="Prints worksheets as Markdown, or writes them to a file: two pages for each notebook.",
    )
    add_handout_options(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from ..course import Worksheet

    return write_handout(Worksheet(options.notebooks), options.out, "the worksheets, to print")

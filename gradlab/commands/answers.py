"""``gradlab answers``: the key for teachers. Exit codes: 0 done, 2 it could not be made."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .outputs import add_handout_options, write_handout

if TYPE_CHECKING:
    from .found import Parsers


def add_answers(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    parser = parsers.add_parser(
        "answers",
        help="the key for teachers: every bet, exit ticket and exercise, with reasons and typical mistakes",
        description="Prints the answers to all bets, exit tickets and exercises as Markdown, or writes them to a file.",
    )
    add_handout_options(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from ..course import AnswerKey

    return write_handout(AnswerKey(options.notebooks), options.out, "the answers, for teachers")

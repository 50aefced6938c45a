"""``gradlab answers``: the key for teachers. Exit codes: 0 done, 2 it could not be made."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .found import Parsers


def add_answers(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    parser = parsers.add_parser(
        "answers",
        help="the key for teachers: every bet and every exercise, with reasons and typical mistakes",
        description="Prints the answers to all bets and exercises as Markdown, or writes them to a file.",
    )
    parser.add_argument(
        "notebooks", nargs="*", metavar="NN", help="numbers of notebooks, such as 03; without any, all of them"
    )
    parser.add_argument("-o", "--out", metavar="FILE", help="a file that ends in .md or .html")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from ..course import AnswerKey

    key = AnswerKey(options.notebooks)
    if options.out is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # it is redirected into a file, most likely
        sys.stdout.write(key.markdown())
        return 0
    path = Path(options.out)
    if path.suffix.lower() not in (".md", ".html"):
        raise ValueError(f"-o: the file must end in .md or .html, got {options.out!r}")
    try:
        path.write_text(key.page() if path.suffix.lower() == ".html" else key.markdown(), encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror or error}") from None
    print(f"{path}: the answers, for teachers")
    return 0

"""``gradlab answers`` and ``gradlab worksheet``: what teachers print. Exit codes: 0 done, 2 it could not be made."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import Parsers, print_text, written


def add_answers(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    _add(
        parsers,
        "answers",
        "the key for teachers: every bet, exit ticket and exercise, with reasons and typical mistakes",
        "Prints the answers to all bets, exit tickets and exercises as Markdown, or writes them to a file.",
    )


def add_worksheet(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    _add(
        parsers,
        "worksheet",
        "for a class to print: the bets of each core to tick, and an exit ticket of five questions",
        "Prints worksheets as Markdown, or writes them to a file: two pages for each notebook.",
    )


def _add(parsers: Parsers[argparse.ArgumentParser], command: str, about: str, description: str) -> None:
    parser = parsers.add_parser(command, help=about, description=description)
    parser.add_argument(
        "notebooks", nargs="*", metavar="NN", help="numbers of notebooks, such as 03; without any, all of them"
    )
    parser.add_argument("-o", "--out", metavar="FILE", help="a file that ends in .md or .html")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from ..course import AnswerKey, Worksheet

    made = AnswerKey(options.notebooks) if options.command == "answers" else Worksheet(options.notebooks)
    if options.out is None:
        print_text(made.markdown())
        return 0
    ending = Path(options.out).suffix.lower()
    if ending not in (".md", ".html"):
        raise ValueError(f"-o: the file must end in .md or .html, got {options.out!r}")
    text = made.page() if ending == ".html" else made.markdown()
    said = "the answers, for teachers" if options.command == "answers" else "the worksheets, to print"
    print(f"{written(lambda path: path.write_text(text, encoding='utf-8'), options.out)}: {said}")
    return 0

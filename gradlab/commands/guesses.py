"""``gradlab guesses``: a learner's record as CSV, and a class's guesses as histograms. Exit codes: 0 done, 2 not."""

from __future__ import annotations

import argparse
import glob
import sys
from collections.abc import Sequence
from pathlib import Path

from . import Parsers, print_text, written


def add_guesses(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    parser = parsers.add_parser(
        "guesses",
        help="your guesses as CSV; what a class guessed, as histograms",
        description="Works with the record of guesses and exercises on this machine. Nothing is sent anywhere.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="action", parser_class=type(parser))
    export = actions.add_parser("export", help="write your own record as CSV")
    export.add_argument("out", nargs="?", help="the file to write; without it, the CSV is printed")
    export.set_defaults(run=_export)
    merge = actions.add_parser("merge", help="count the guesses in the files of a class, one file for each learner")
    merge.add_argument("files", nargs="+", help=".csv files from export, or records as they are kept (.jsonl)")
    merge.add_argument("-o", "--out", metavar="PAGE.html", help="write one HTML page; without it, text is printed")
    merge.set_defaults(run=_merge)
    delete = actions.add_parser("delete", help="delete your own record")
    delete.set_defaults(run=_delete)


def _export(options: argparse.Namespace) -> int:
    from ..course import my_record

    record = my_record()
    if options.out is None:
        print_text(record.csv().replace("\r\n", "\n"))
    else:
        print(f"{written(record.save, options.out)}: {repr(record).splitlines()[0]}")
    return 0


def _merge(options: argparse.Namespace) -> int:
    from ..course import class_guesses

    found = class_guesses(_paths(options.files))
    for note in found.notes:
        print(note, file=sys.stderr)
    if options.out is None:
        print(found)
    else:
        path = written(lambda target: target.write_text(found.page(), encoding="utf-8"), options.out)
        print(f"{path}: {repr(found).splitlines()[0]}")
    return 0


def _delete(options: argparse.Namespace) -> int:
    from ..widgets import delete_record, record_path

    path = record_path()
    if path is None or not path.exists():
        print("There is no record on this machine.")
        return 0
    try:
        delete_record(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be deleted: {error.strerror or error}") from None
    print(f"Deleted {path}.")
    return 0


def _paths(names: Sequence[str]) -> list[Path]:
    """Return the files; a pattern that the shell has left as it is, as on Windows, is expanded here."""
    found: list[Path] = []
    for name in names:
        matches = [] if Path(name).exists() else sorted(glob.glob(name))
        found += map(Path, matches or [name])
    return list(dict.fromkeys(found))

"""What ``gradlab answers`` and ``gradlab worksheet`` share: which notebooks, and where the text goes."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..course import Handout


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the notebooks and the file."""
    parser.add_argument(
        "notebooks", nargs="*", metavar="NN", help="numbers of notebooks, such as 03; without any, all of them"
    )
    parser.add_argument("-o", "--out", metavar="FILE", help="a file that ends in .md or .html")


def write_handout(handout: Handout, out: str | None, said: str) -> int:
    """Print a handout as Markdown, or write it to a file and say so."""
    if out is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # it is redirected into a file, most likely
        sys.stdout.write(handout.markdown())
        return 0
    path = Path(out)
    if path.suffix.lower() not in (".md", ".html"):
        raise ValueError(f"-o: the file must end in .md or .html, got {out!r}")
    try:
        path.write_text(handout.page() if path.suffix.lower() == ".html" else handout.markdown(), encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror or error}") from None
    print(f"{path}: {said}")
    return 0

"""Where the text of a command goes: to the screen, or to a file; and what the handouts for a class share."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..course import Handout


def print_text(text: str) -> None:
    """Print a text in UTF-8, whatever the code page: it is redirected into a file, most likely."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    sys.stdout.write(text)


def written(write: Callable[[Path], object], path: str | Path) -> Path:
    """Write a file and return its path; ValueError that names it where that is not possible."""
    try:
        write(Path(path))
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror or error}") from None
    return Path(path)


def add_handout_options(parser: argparse.ArgumentParser) -> None:
    """Declare which notebooks a handout is for, and its file."""
    parser.add_argument(
        "notebooks", nargs="*", metavar="NN", help="numbers of notebooks, such as 03; without any, all of them"
    )
    parser.add_argument("-o", "--out", metavar="FILE", help="a file that ends in .md or .html")


def write_handout(handout: Handout, out: str | None, said: str) -> int:
    """Print a handout as Markdown, or write it to a file and say so."""
    if out is None:
        print_text(handout.markdown())
        return 0
    ending = Path(out).suffix.lower()
    if ending not in (".md", ".html"):
        raise ValueError(f"-o: the file must end in .md or .html, got {out!r}")
    text = handout.page() if ending == ".html" else handout.markdown()
    print(f"{written(lambda path: path.write_text(text, encoding='utf-8'), out)}: {said}")
    return 0

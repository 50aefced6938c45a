"""``gradlab site``: write the series as web pages. Exit codes: 0 for success, 1 for page problems, 2 for failure."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from pathlib import Path

from ..formatting import REPOSITORY
from . import Parsers

_ROOT = Path(__file__).parents[2]


def add_site(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Add ``gradlab site`` and its options to ``parsers``."""
    parser = parsers.add_parser(
        "site",
        help="write the whole series as interactive web pages that need no kernel",
        description="Runs the labs of every notebook, records them, and writes the series as a folder of web pages. "
        "The pages load nothing from elsewhere: any web server can serve them, and everything except the search works "
        'from disk. This takes minutes, and needs a clone of the repository and pip install "torch-gradlab[site]".',
    )
    parser.set_defaults(run=_run)
    parser.add_argument("out", type=Path, metavar="OUT", help="a folder: new, empty, or a site written before")
    parser.add_argument(
        "--address", default=REPOSITORY, metavar="URL", help="the repository to link to, https://github.com/YOU/NAME"
    )
    parser.add_argument("--tag", default="main", help="the tag or branch of that repository to link to (default: main)")
    parser.add_argument("--only", metavar="NN", help="one lesson, such as 03, with its worksheet and answers")


def _run(options: argparse.Namespace) -> int:
    if not (_ROOT / "site" / "gradlab_site").is_dir():
        raise ValueError(f"the command needs a clone of the repository: no folder site next to {_ROOT / 'gradlab'}")
    if options.address and not re.fullmatch(r"https://github\.com/[\w-]+/[\w.-]+", options.address):
        raise ValueError(f"--address must be https://github.com/YOU/NAME, got {options.address!r}")
    sys.path.insert(0, str(_ROOT / "site"))
    try:
        site = importlib.import_module("gradlab_site.build")
    except ModuleNotFoundError as error:
        raise ValueError(f'{error.name} is missing: pip install "torch-gradlab[site]"') from None
    address = site.SiteAddress(options.address, options.tag)
    problems = site.build_site(_ROOT, options.out.absolute(), address, options.only)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(options.out / "index.html")
    return 1 if problems else 0

"""``gradlab factcheck``: the claims of notebook 12, tried here. Exit codes: 0 all tried, 1 some were not, 2 none."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .outputs import print_text, written

if TYPE_CHECKING:
    from .found import Parsers


def add_factcheck(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    parser = parsers.add_parser(
        "factcheck",
        help="what four articles say about gradients, tried on this PyTorch",
        description="Runs the experiments of notebook 12 and prints the verdicts. It takes some ten seconds.",
    )
    parser.add_argument("notebook", nargs="?", metavar="NOTEBOOK", help="12_fact_check.ipynb, if it is not found here")
    parser.add_argument("--format", choices=("md", "json"), default="md", help="Markdown (the default) or JSON")
    parser.add_argument("-o", "--out", metavar="FILE", help="write to a file")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from ..course import try_claims

    log, errors = try_claims(Path(options.notebook) if options.notebook else None)
    text = log.markdown() if options.format == "md" else log.json() + "\n"
    if options.out is None:
        print_text(text)
    else:
        print(f"{written(lambda path: path.write_text(text, encoding='utf-8'), options.out)}: {log.total}")
    for code, words in errors.items():
        print(f"{code} could not be tried: {words}", file=sys.stderr)
    return 1 if log.missing else 0

"""``gradlab doctor``: what is wrong with a program's loop. Exit codes: 0 nothing, 1 findings, 2 it could not be run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .found import Parsers

_EXIT_CODES = """
exit codes:
  0  no finding as grave as --fail-on, and the program ended well
  1  findings
  2  the program could not be run, or ended with an error or an exit code of its own that no finding explains

A finding is ignored by a comment at the end of its line:  # gradlab: ignore[code] reason
select, ignore and fail-on can be set under [tool.gradlab.doctor] in pyproject.toml; an option wins over it.
"""


def add_doctor(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    parser = parsers.add_parser(
        "doctor",
        help="run a training script and say what is wrong with its loop",
        description="Runs a script, a notebook or a module, unchanged, and says what is wrong with its training loop.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_run)
    parser.add_argument("-m", dest="module", action="store_true", help="run a module, as python -m does")
    forms = ("text", "json", "sarif", "github")
    parser.add_argument("--format", choices=forms, default="text", help="how the report is written; text by default")
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    parser.add_argument("--output", metavar="FILE", help="write the report to this file")
    parser.add_argument("--select", type=_codes, metavar="CODES", help="report these codes only (a,b,c)")
    parser.add_argument("--ignore", type=_codes, metavar="CODES", help="do not report these codes (a,b,c)")
    parser.add_argument("--fail-on", metavar="SEVERITY", help="error, warning or hint; warning by default")
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    parser.add_argument("script", help="the path of a Python script or a notebook; after -m the name of a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program itself is given")


def _codes(text: str) -> tuple[str, ...]:
    return tuple(code.strip() for code in text.split(",") if code.strip())


def _run(options: argparse.Namespace) -> int:
    from ..doctor import FindingFilter, read_settings, run_script  # torch, at last

    settings = read_settings(Path.cwd() / "." if options.module else Path(options.script))
    asked = {"select": options.select, "ignore": options.ignore, "fail_on": options.fail_on}
    settings |= {name: value for name, value in asked.items() if value is not None}
    return run_script(
        options.script,
        options.arguments,
        module=options.module,
        form=options.format,
        output=options.output,
        wanted=FindingFilter(**settings),
        exit_zero=options.exit_zero,
        version=options.version,
    )

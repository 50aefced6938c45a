"""``gradlab doctor``: find bugs in loops. Exit codes: 0 if no bug reaches --fail-on, 1 if one does, 2 if unknown."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import Parsers

_EXIT_CODES = """
exit codes:
  0  no finding reaches the severity of --fail-on, and the program ended without an error
  1  findings reach that severity
  2  no verdict: the program could not be run, ended with an error or an exit code that no finding explains,
     trained nothing, or trained where the doctor could not follow

The exit code of the program itself is not passed on: any code except 0 counts as an error, and the report names it.
If you end the program with Ctrl-C or SIGTERM, the report is printed first, and the findings decide the exit code.

The doctor follows one thread. If the program trains nothing itself, the first process that it starts with
multiprocessing or torch.multiprocessing writes the report. With torchrun, rank 0 writes the report:
  gradlab doctor torchrun --nproc-per-node 2 train.py
  torchrun --nproc-per-node 2 -m gradlab doctor train.py

To ignore a finding, add a comment at the end of its line:  # gradlab: ignore[code] reason
The report gives the number of ignored findings.
select, ignore and fail-on can be set under [tool.gradlab.doctor] in pyproject.toml; an option overrides them.
"""


def add_doctor(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Add ``gradlab doctor`` and its options to ``parsers``."""
    parser = parsers.add_parser(
        "doctor",
        help="run a training script and report what is wrong with its loop",
        description="Runs a script, notebook or module, unchanged, and reports what is wrong with its training loop.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_run)
    parser.add_argument("-m", dest="module", action="store_true", help="run a module, as python -m does")
    forms = ("text", "json", "github")
    parser.add_argument("--format", choices=forms, default="text", help="format of the report (default: text)")
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    parser.add_argument("--output", metavar="FILE", help="write the report to this file")
    parser.add_argument("--select", type=_codes, metavar="CODES", help="report only these codes (a,b,c)")
    parser.add_argument("--ignore", type=_codes, metavar="CODES", help="do not report these codes (a,b,c)")
    parser.add_argument("--fail-on", metavar="SEVERITY", help="lowest failing severity: error, warning (default), hint")
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    limit = "stop watching after {}, print the report at once, and let the program go on at full speed"
    parser.add_argument("--updates", type=int, metavar="N", help=limit.format("N calls to step()"))
    parser.add_argument("--seconds", type=float, metavar="S", help=limit.format("S seconds"))
    parser.add_argument("--report-to", metavar="FILE", help=argparse.SUPPRESS)  # for rank 0 of torchrun
    parser.add_argument("script", help="the path of a script or a notebook, or torchrun; with -m, the name of a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program itself")


def _codes(text: str) -> tuple[str, ...]:
    return tuple(code.strip() for code in text.split(",") if code.strip())


def _run(options: argparse.Namespace) -> int:
    for name, limit in {"--updates": options.updates, "--seconds": options.seconds}.items():
        if limit is not None and not limit > 0:
            raise ValueError(f"{name} must be more than 0, got {limit}")

    from ..doctor import FindingFilter, read_settings, run_script  # imports torch

    settings = read_settings(Path.cwd() / "." if options.module else Path(options.script))
    overrides = {name: getattr(options, name) for name in ("select", "ignore", "fail_on")}
    settings |= {name: value for name, value in overrides.items() if value is not None}
    return run_script(
        options.script,
        options.arguments,
        module=options.module,
        form=options.format,
        output=options.output,
        wanted=FindingFilter(**settings),
        exit_zero=options.exit_zero,
        updates=options.updates,
        seconds=options.seconds,
        report_to=options.report_to,
    )

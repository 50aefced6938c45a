"""The doctor for a program: runs it unchanged, as Python would, and writes the report at its end."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from .entry_point import EntryPoint, NotRunnableError, find_entry_point
from .filters import FindingFilter
from .formats import format_report
from .watching import watch

CLEAN, FINDINGS, NOT_RUN = 0, 1, 2
"""Exit codes. A program that ends with an error, and no finding to explain it, could not be run."""


def run_script(
    name: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    form: str = "text",
    output: str | None = None,
    wanted: FindingFilter | None = None,
    exit_zero: bool = False,
    version: str = "0",
) -> int:
    """Run a script, a notebook, or (``module``) a module under ``watch``, write the report, return the exit code.

    form: one of FORMATS. Without ``output``, a file, the report goes to standard output; in every form but "text" it is
    alone there, and what the program and its children print goes to standard error. version: of gradlab, for SARIF.
    """
    wanted = wanted or FindingFilter()
    try:
        program = find_entry_point(name, module=module)
    except NotRunnableError as error:
        print(f"gradlab doctor: {error}", file=sys.stderr)
        return NOT_RUN
    report = watch()
    alone = form != "text" and output is None
    with _stdout_to_stderr() if alone else contextlib.nullcontext():
        failed = _run(program, arguments, report)
    report.findings = [
        replace(finding, file=program.name_of(finding.file)) for finding in report.findings if wanted.keeps(finding)
    ]
    text = format_report(report, form, version)
    if output is not None:
        Path(output).write_text(text + "\n", encoding="utf-8")
    else:
        print(text if alone else f"\n{text}", flush=True)
    if wanted.fails(report.findings):
        return CLEAN if exit_zero else FINDINGS
    return NOT_RUN if failed else CLEAN


def _run(program: EntryPoint, arguments: Sequence[str], report: watch) -> bool:
    """Run it under watch; return whether it ended with an error."""
    argv, path = [*sys.argv], [*sys.path]
    try:
        with report:
            program.run(arguments)
    except KeyboardInterrupt:
        print("gradlab doctor: the script was interrupted", file=sys.stderr)
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        return error.code not in (None, 0)
    except BaseException as error:
        if not program.tells_errors:
            _print_own_part(error, program)
        return True
    finally:
        sys.argv[:], sys.path[:] = argv, path
    return False


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Send to standard error what is printed: by Python, and by what C code and child processes write to file 1."""
    with contextlib.redirect_stdout(sys.stderr):
        try:
            kept, there = os.dup(1), os.dup2(sys.stderr.fileno(), 1)
        except (OSError, ValueError):  # no such files, as in a notebook
            yield
            return
        try:
            yield
        finally:
            os.dup2(kept, there)
            os.close(kept)


def _print_own_part(error: BaseException, program: EntryPoint) -> None:
    """Print the traceback from the program on: the frames above it are ours and say nothing to its author."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != str(program.path):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace, file=sys.stderr)

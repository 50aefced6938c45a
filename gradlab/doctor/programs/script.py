"""The doctor for a program: runs it unchanged, as Python would, and writes one report, whatever processes it starts."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from ..finding import Report
from ..reports import FindingFilter
from ..rules import asked_codes
from ..watching import watch
from .children import (
    ITSELF,
    ChildReport,
    FollowedProcesses,
    TerminatedError,
    WatchLimits,
    expect_report,
    merge_reports,
    read_reports,
    run_and_report,
    sigterm_raises,
)
from .entry_point import EntryPoint, NotRunnableError, find_entry_point
from .report_printer import ReportPrinter, write_stdout
from .torchrun import LocalRanks, is_launcher, local_ranks, run_torchrun, watched_arguments

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
    updates: int | None = None,
    seconds: float | None = None,
    report_to: str | None = None,
) -> int:
    """Run a script, a notebook, a module, or torchrun under watch, write the report, return the exit code.

    form: one of FORMATS. Without ``output``, a file, the report goes to standard output; in every form but "text" it is
    alone there, and what the program and its children print goes to standard error. The watch ends early after
    ``updates`` or ``seconds``. report_to: a folder for the report of this process, which is one of several; then
    nothing is written, and the exit code is the program's own.
    """
    printer = ReportPrinter(form, output, wanted or FindingFilter())
    own_folder, process = None, os.getpid()
    atexit.register(write_stdout)  # comes after what the program does at exit: Python's own flush could fail
    try:
        ranks = local_ranks() if report_to is None else None
        folder = ranks.folder if ranks else Path(report_to or tempfile.mkdtemp(prefix="gradlab-doctor-"))
        limits = WatchLimits(folder, updates, seconds)
        if report_to is not None or (ranks and not ranks.first):  # another process reads it
            return _run_for_others(find_entry_point(name, module=module), arguments, limits)
        own_folder = folder
        if ranks is None and is_launcher(name, module=module):
            code = _run_launcher(watched_arguments(arguments, limits), limits, printer)
        else:
            code = _run_and_print(find_entry_point(name, module=module), arguments, limits, printer, ranks)
    except NotRunnableError as error:
        print(f"gradlab doctor: {error}", file=sys.stderr)
        return NOT_RUN
    finally:
        if own_folder is not None and os.getpid() == process:  # not in a child that the program has forked
            shutil.rmtree(own_folder, ignore_errors=True)
    return CLEAN if exit_zero and code == FINDINGS else code


def _run_for_others(program: EntryPoint, arguments: Sequence[str], limits: WatchLimits) -> int:
    """Run a program that is one rank of several; its report goes to the folder."""
    name = f"rank {os.environ.get('RANK', os.getpid())}"
    path = limits.folder / name.replace(" ", "-")
    expect_report(path, name)
    try:
        run_and_report(lambda: program.run(arguments), ProgramWatch(limits), path, name)
    except Exception as error:
        _tell(error, program)
        return 1
    return 0


def _run_launcher(arguments: Sequence[str], limits: WatchLimits, printer: ReportPrinter) -> int:
    """Run torchrun and print what its ranks report."""
    code: int | None = None
    with printer.keeping_stdout(), sigterm_raises(), suppress(KeyboardInterrupt, TerminatedError):
        code = run_torchrun(arguments)
    children, lost = read_reports(limits.folder)
    nothing = Report([], "No process of torchrun got as far as training.", judged=False)
    return _print_last(printer, merge_reports(children, lost) if children else nothing, code)


def _run_and_print(
    program: EntryPoint, arguments: Sequence[str], limits: WatchLimits, printer: ReportPrinter, ranks: LocalRanks | None
) -> int:
    """Run a program and print what it, and the processes that it has started, report."""
    process = os.getpid()
    printer.name_of = program.name_of
    with printer.keeping_stdout():
        report = ProgramWatch(limits, on_enough=printer.write if ranks is None else None)
        with sigterm_raises():
            code = _run(program, arguments, report)
            if os.getpid() != process:  # a child that the program has forked, and that has come to its end
                raise SystemExit(code)
            try:
                report.processes.finish(patient=code is not None)
            except (KeyboardInterrupt, TerminatedError):  # the program itself has ended, and they have not
                code = None
                report.processes.finish(patient=False)
        if ranks is not None:
            ranks.wait(patient=code is not None)
    name = ITSELF if ranks is None else f"rank {ranks.rank}"
    children, lost = read_reports(limits.folder)
    children.insert(0, ChildReport(name, report, report.trained, report.rank_norms))
    return _print_last(printer, merge_reports(children, lost), code)


def _print_last(printer: ReportPrinter, report: Report, code: int | None) -> int:
    """Print the report of a program that has ended with this exit code, None if it was ended from outside."""
    if printer.write(report, f" The program ended with exit code {code}." if code else ""):
        return FINDINGS
    return NOT_RUN if code or not report.judged else CLEAN


def _run(program: EntryPoint, arguments: Sequence[str], report: ProgramWatch) -> int | None:
    """Run it under watch; return its exit code, None if it was ended from outside: Ctrl-C, SIGTERM, ``| head``."""
    argv, path = [*sys.argv], [*sys.path]
    try:
        with report:
            program.run(arguments)
    except (KeyboardInterrupt, TerminatedError) as error:
        how = "ended by SIGTERM" if isinstance(error, TerminatedError) else "interrupted"
        print(f"gradlab doctor: the script was {how}", file=sys.stderr)
        return None
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:
        return 1 if _tell(error, program) else None
    finally:
        sys.argv[:], sys.path[:] = argv, path
    return 0


def _tell(error: BaseException, program: EntryPoint) -> bool:
    """Print the traceback from the program on: the frames above it are ours and say nothing to its author.

    Returns False, and prints nothing, if only the reader of standard output has gone.
    """
    if isinstance(error, BrokenPipeError) and not write_stdout("\n"):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != str(program.path):
        trace = trace.tb_next
    if not program.tells_errors:
        traceback.print_exception(type(error), error, trace, file=sys.stderr)
    return True


class ProgramWatch(watch):
    """A watch that follows processes, and reports all codes: what counts is judged where they are printed."""

    def __init__(self, limits: WatchLimits, on_enough: Callable[[Report], object] | None = None) -> None:
        """``on_enough(report)`` is called when the watch has ended early."""
        super().__init__(updates=limits.updates, seconds=limits.seconds, also=asked_codes())
        self._on_enough = on_enough
        self.processes = FollowedProcesses(limits, partial(self.__exit__, None, None, None))
        self._follow = self.processes.follow

    def _end_early(self) -> None:
        super()._end_early()
        if self._on_enough is not None:
            self._on_enough(self)

"""The doctor for a program: runs it unchanged, as Python would, and writes one report, whatever processes it starts."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from weakref import WeakSet

from ..finding import Report
from ..reports import FindingFilter, ReportPrinter, write_stdout
from ..watching import watch
from .entry_point import EntryPoint, NotRunnableError, find_entry_point
from .processes import (
    LAUNCHER,
    ChildRun,
    Limits,
    TerminatedError,
    note_unwatched,
    rank_of_torchrun,
    read_report,
    run_and_report,
    run_torchrun,
    sigterm_raises,
    write_report,
)

CLEAN, FINDINGS, NOT_RUN = 0, 1, 2
"""Exit codes. A program that ends with an error, and no finding to explain it, could not be run."""
_GRACE_SECONDS = 2.0  # in which processes that Ctrl-C has reached, too, end by themselves
_REPORT_SECONDS = 10.0  # that a process gets for its report when it is ended


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
    ``updates`` or ``seconds``. report_to: a file for the report if this process is a rank of a torchrun that the doctor
    has started; then nothing is printed, and the exit code is the program's own.
    """
    printer = ReportPrinter(form, output, wanted or FindingFilter())
    limits: Limits = {"updates": updates, "seconds": seconds}
    folder, process = Path(tempfile.mkdtemp(prefix="gradlab-doctor-")), os.getpid()
    atexit.register(write_stdout)  # comes after what the program does at exit: Python's own flush could fail
    try:
        if name == LAUNCHER if module else Path(name).name == "torchrun":
            code = _run_launcher(arguments, limits, folder / "report.json", printer)
        else:
            program = find_entry_point(name, module=module)
            if report_to or rank_of_torchrun():
                return _run_rank(program, arguments, ProgramWatch(limits, folder), report_to)
            code = _run_and_print(program, arguments, ProgramWatch(limits, folder, printer.write), printer)
    except NotRunnableError as error:
        print(f"gradlab doctor: {error}", file=sys.stderr)
        return NOT_RUN
    finally:
        if os.getpid() == process:  # not in a child that the program has forked
            shutil.rmtree(folder, ignore_errors=True)
    return CLEAN if exit_zero and code == FINDINGS else code


class ProgramWatch(watch):
    """A watch of a program's process, or else of the first one that it starts."""

    def __init__(self, limits: Limits, folder: Path, on_enough: Callable[[Report], object] | None = None) -> None:
        """Begin with no process: ``folder`` is for their report; ``on_enough(report)`` is called at an early end."""
        super().__init__(**limits)
        self._limits, self._path, self._on_enough = limits, folder / "first.json", on_enough
        self._running: WeakSet[BaseProcess] = WeakSet()

    def _end_early(self) -> None:
        super()._end_early()
        if self._on_enough is not None:
            self._on_enough(self)

    def _follow(self, process: BaseProcess) -> None:
        self._running.add(process)
        path = self._path if self.processes == 1 else None
        leave = partial(self.__exit__, None, None, None)
        process.run = ChildRun(process, path, self._limits, leave)  # type: ignore[method-assign]  # travels with it

    def finish(self, *, patient: bool) -> None:
        """Wait for the processes: Python itself waits at exit for them, and ends those that are daemons.

        If the program was ended from outside, the others that were not are ended, too.
        """
        waiting = [process for process in multiprocessing.active_children() if process in self._running]
        try:
            end = time.monotonic() + _GRACE_SECONDS
            for process in [] if patient else waiting:
                process.join(max(0.0, end - time.monotonic()))
        finally:  # also at a second Ctrl-C
            for process in waiting:
                if process.daemon or not patient:
                    process.terminate()
        for process in waiting:
            process.join(None if patient and not process.daemon else _REPORT_SECONDS)

    def conclude(self) -> Report:
        """Return the report of this process, or of the first one that it has started if this one has trained nothing.

        It says how many others there were.
        """
        first = None if self.trained else read_report(self._path)
        report = first or self.plain()
        rank, others = rank_of_torchrun(), self.processes if self.trained else 0
        if first is not None:
            report.watched, others = f"In the first process that it started: {report.watched}", self.processes - 1
        if rank is not None:
            report.watched, others = f"In rank {rank}: {report.watched}", others + int(os.environ["WORLD_SIZE"]) - 1
        report.watched += note_unwatched(others)
        return report


def _run_launcher(arguments: Sequence[str], limits: Limits, path: Path, printer: ReportPrinter) -> int:
    """Run torchrun and print what its rank 0 reports."""
    code: int | None = None
    with printer.keeping_stdout(), sigterm_raises(), suppress(KeyboardInterrupt, TerminatedError):
        code = run_torchrun(arguments, limits, path)
    words = "Rank 0 of torchrun has left no report: it did not get as far as training, or runs on another machine."
    return _print_last(printer, read_report(path) or Report([], words, judged=False), code)


def _run_rank(program: EntryPoint, arguments: Sequence[str], report: ProgramWatch, report_to: str | None) -> int:
    """Run a program that is a rank of torchrun: rank 0 is watched, and its report goes to a file."""
    try:
        if report_to is None or rank_of_torchrun():
            program.run(arguments)
        else:
            path = Path(report_to)
            run_and_report(lambda: program.run(arguments), report, lambda: write_report(path, report.conclude()))
    except Exception as error:
        _tell(error, program)
        return 1
    return 0


def _run_and_print(program: EntryPoint, arguments: Sequence[str], report: ProgramWatch, printer: ReportPrinter) -> int:
    """Run a program and print what it, or else the first process that it has started, reports."""
    process = os.getpid()
    printer.name_of = program.name_of
    with printer.keeping_stdout(), sigterm_raises():
        code = _run(program, arguments, report)
        if os.getpid() != process:  # a child that the program has forked, and that has come to its end
            raise SystemExit(code)
        try:
            report.finish(patient=code is not None)
        except (KeyboardInterrupt, TerminatedError):  # the program itself has ended, and they have not
            code = None
            report.finish(patient=False)
    return _print_last(printer, report.conclude(), code)


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

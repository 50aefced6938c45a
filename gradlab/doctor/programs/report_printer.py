"""Where the report of a program goes: standard output, alone there if need be, or a file."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from ..finding import Finding, Report
from ..reports import FindingFilter, format_report


class ReportPrinter:
    """Writes the report, whatever others print."""

    def __init__(self, form: str, output: str | None, wanted: FindingFilter) -> None:
        """Take the options of ``run_script``."""
        self.name_of: Callable[[str], str] = str
        """Returns what to call a file: the file of a notebook's cell says nothing to its author."""
        self._form, self._wanted = form, wanted
        self._output = Path(output).absolute() if output is not None else None
        self._here = f"{Path.cwd()}{os.sep}"  # the program may go elsewhere
        self._alone = form != "text" and output is None
        self._written: tuple[object, ...] = ()
        self._stdout: int | None = None

    @contextlib.contextmanager
    def keeping_stdout(self) -> Iterator[None]:
        """Keep standard output for the report, if it is to be alone there.

        What Python prints goes to standard error, and so does what C code and child processes write to file 1.
        """
        with contextlib.ExitStack() as at_end:
            if self._alone:
                at_end.enter_context(contextlib.redirect_stdout(sys.stderr))
                with contextlib.suppress(OSError, ValueError):  # no such files, as in a notebook
                    self._stdout, there = os.dup(1), os.dup2(sys.stderr.fileno(), 1)
                    at_end.callback(setattr, self, "_stdout", None)
                    at_end.callback(os.close, self._stdout)
                    at_end.callback(os.dup2, self._stdout, there)
            yield

    def write(self, report: Report, note: str = "") -> bool:
        """Write the report, and return whether there are findings that count.

        A second report is written if it says something else, and there is a place for two.
        """
        shown = Report(report.findings, report.watched + note, report.missing, report.judged)
        self._wanted.apply(shown)
        fails = self._wanted.fails(shown.findings)
        shown.findings = [self._named(finding) for finding in shown.findings]
        content = (shown.summary, *shown.findings)
        if content != self._written and not (self._written and self._alone):
            self._put(format_report(shown, self._form))
        self._written = content
        return fails

    def _named(self, finding: Finding) -> Finding:
        def name(file: str) -> str:
            return self.name_of(file).removeprefix(self._here)

        cause = finding.cause
        return replace(finding, file=name(finding.file), cause=cause and replace(cause, file=name(cause.file)))

    def _put(self, text: str) -> None:
        if self._output is not None:
            try:
                self._output.write_text(text + "\n", encoding="utf-8")
            except OSError as error:  # the training is over, and its report is not to be lost
                print(f"gradlab doctor: --output {self._output}: {error.strerror}", file=sys.stderr)
                print(text, file=sys.stderr, flush=True)
        elif self._stdout is not None:  # the program still runs
            try:
                os.write(self._stdout, f"{text}\n".encode())
            except BrokenPipeError:
                _to_nowhere(self._stdout)
        else:
            write_stdout(f"{text}\n" if self._alone else f"\n{text}\n")


def write_stdout(text: str = "") -> bool:
    """Write and flush; if the reader has gone (``| head``), return False, and what still comes goes nowhere."""
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        _to_nowhere(sys.stdout.fileno())
        return False
    except ValueError:  # the program has closed it
        return False
    return True


def _to_nowhere(file: int) -> None:
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), file)

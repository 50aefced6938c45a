"""Where the report of a program goes: standard output, alone there if need be, or a file."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..finding import Finding, Report
from ..reports import FindingFilter, format_report


@dataclass(frozen=True)
class ReportStyle:
    """How a report is written, and what counts."""

    form: str = "text"
    """One of FORMATS."""
    output: str | None = None
    """The file that it goes to, in the place of standard output."""
    wanted: FindingFilter = field(default_factory=FindingFilter)
    version: str = "0"
    """That of gradlab, for SARIF."""

    @property
    def alone(self) -> bool:
        """Is the report alone on standard output? What the program and its children print goes to standard error."""
        return self.form != "text" and self.output is None


class ReportPrinter:
    """Writes the report; while it is entered, what others print does not get between."""

    def __init__(self, style: ReportStyle, name_of: Callable[[str], str] = str) -> None:
        """``name_of(file)`` returns what to call a file in the report."""
        self._style, self._name_of = style, name_of
        self._written: tuple[object, ...] = ()
        self._aside = contextlib.ExitStack()
        self._stdout: int | None = None

    def __enter__(self) -> ReportPrinter:
        """Keep standard output for the report, if it is to be alone there."""
        if self._style.alone:
            self._stdout = self._aside.enter_context(_stdout_to_stderr())
        return self

    def __exit__(self, *error: object) -> None:
        """Give standard output back."""
        self._aside.close()
        self._stdout = None

    def write(self, report: Report, note: str = "") -> bool:
        """Write the report, and return whether there are findings that count.

        A second report is written if it says something else, and there is a place for two.
        """
        kept = [finding for finding in report.findings if self._style.wanted.keeps(finding)]
        named = [self._named(finding) for finding in kept]
        content = (report.watched + note, *named)
        if content != self._written and not (self._written and self._style.alone):
            self._put(Report(named, report.watched + note, report.missing, report.judged))
        self._written = content
        return self._style.wanted.fails(kept)

    def _named(self, finding: Finding) -> Finding:
        cause = finding.cause
        if cause is not None:
            cause = replace(cause, file=self._name_of(cause.file))
        return replace(finding, file=self._name_of(finding.file), cause=cause)

    def _put(self, report: Report) -> None:
        style = self._style
        text = format_report(report, style.form, style.version)
        if style.output is not None:
            try:
                Path(style.output).write_text(text + "\n", encoding="utf-8")
            except OSError as error:  # the training is over, and its report is not to be lost
                print(f"gradlab doctor: --output {style.output}: {error.strerror}", file=sys.stderr)
                print(text, file=sys.stderr, flush=True)
        elif self._stdout is not None:  # the program still runs
            os.write(self._stdout, f"{text}\n".encode())
        else:
            print(text if style.alone else f"\n{text}", flush=True)


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[int | None]:
    """Send to standard error what is printed: by Python, and by what C code and child processes write to file 1.

    Gives the file that standard output was, None if there is none.
    """
    with contextlib.redirect_stdout(sys.stderr):
        try:
            kept, there = os.dup(1), os.dup2(sys.stderr.fileno(), 1)
        except (OSError, ValueError):  # no such files, as in a notebook
            yield None
            return
        try:
            yield kept
        finally:
            os.dup2(kept, there)
            os.close(kept)

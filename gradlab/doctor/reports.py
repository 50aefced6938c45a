"""A filter for findings, and the output of reports as text, JSON or GitHub annotations to a file or standard output.

GitHub documents the annotations at https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from .finding import SEVERITIES, Cause, Finding, Report, Severity
from .rules import check_codes
from .source.syntax import source_line

_Place = TypeVar("_Place", Finding, Cause)
_COMMENT = re.compile(r"#\s*gradlab:\s*ignore\[([^\]]*)\]")


@dataclass(frozen=True)
class FindingFilter:
    """The codes to report and to ignore, and the lowest severity that makes the exit code 1."""

    select: tuple[str, ...] = ()
    """Codes to report; empty for all."""
    ignore: tuple[str, ...] = ()
    fail_on: Severity = "warning"

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown code or severity, and TypeError for codes that are a str or not iterable."""
        for name in ("select", "ignore"):
            check_codes(getattr(self, name), name)
        if self.fail_on not in SEVERITIES:
            raise ValueError(f"fail-on must be one of {', '.join(SEVERITIES)}, got {self.fail_on!r}")

    def apply(self, report: Report) -> None:
        """Remove findings from ``report`` by code or comment, and count in ``ignored`` those removed by comment."""
        wanted = self.select or report.codes
        selected = [each for each in report.findings if each.code in wanted and each.code not in self.ignore]
        report.findings = [finding for finding in selected if not _ignored_by_comment(finding)]
        report.ignored = len(selected) - len(report.findings)

    def fails(self, findings: Sequence[Finding]) -> bool:
        """Return whether any of the findings has the severity ``fail_on`` or a higher one."""
        return any(SEVERITIES.index(finding.severity) <= SEVERITIES.index(self.fail_on) for finding in findings)


def _ignored_by_comment(finding: Finding) -> bool:
    """Return whether the finding's line or the line to edit has a comment ``# gradlab: ignore[code]`` with its code."""
    places = [(site.file, site.line) for site in (finding, finding.cause) if site is not None and site.line]
    comments = filter(None, (_COMMENT.search(source_line(site)) for site in places))
    return any(finding.code == code.strip() for comment in comments for code in comment[1].split(","))


def read_settings(beside: Path) -> dict[str, Any]:
    """Return the table ``[tool.gradlab.doctor]`` of the nearest ``pyproject.toml`` as arguments for a FindingFilter.

    The search goes from the folder of the path ``beside`` up to the root. If it finds no file, return {}. Raises
    ValueError with the name of the file if the TOML is invalid, or if a key or a value is not allowed.
    """
    files = (folder / "pyproject.toml" for folder in beside.absolute().parents)
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        return {}
    try:
        tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
        table = tool.get("gradlab", {}).get("doctor", {})
        allowed = {item.name.replace("_", "-"): item.name for item in fields(FindingFilter)}
        if unknown := [*table.keys() - allowed]:
            raise ValueError(f"unknown key {unknown[0]!r} in [tool.gradlab.doctor]; allowed keys: {', '.join(allowed)}")
        tuples = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
        settings: dict[str, Any] = {allowed[key]: value for key, value in tuples.items()}
        FindingFilter(**settings)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from None
    return settings


def format_report(report: Report, form: str) -> str:
    """Return the report as text in the given ``form``, one of FORMATS."""
    return _WRITERS[form](report)


def _github(report: Report) -> str:
    lines = [_annotation(finding) for finding in report.findings]
    if not lines or not report.judged or report.ignored:
        text = f"{report.summary} {report.checked}".strip()
        lines.append(f"::{'notice' if report.judged else 'warning'}::{_escaped(text)}")
    return "\n".join(lines)


def _annotation(finding: Finding) -> str:
    location = f"file={_property(Path(finding.file).as_posix())},line={finding.line}," if finding.line else ""
    cause = finding.cause
    edit = f"\n{f'Insert {cause.insert}' if cause.insert else 'Edit'}: {cause.file}:{cause.line}" if cause else ""
    level = "notice" if finding.severity == "hint" else finding.severity
    text = f"{finding.message}\nSeen: {finding.evidence}{edit}\nFix: {finding.fix}\nLesson: {finding.lesson}"
    return f"::{level} {location}title={_property(finding.code)}::{_escaped(text)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


_WRITERS: dict[str, Callable[[Report], str]] = {
    "text": lambda report: report.text,
    "json": lambda report: json.dumps(report.as_dict(), indent=2),
    "github": _github,
}
FORMATS = tuple(_WRITERS)


class ReportPrinter:
    """Writes the report on a program to a file or to standard output, separate from the program's own output."""

    def __init__(self, form: str, output: str | None, wanted: FindingFilter) -> None:
        self._form, self._wanted = form, wanted
        self._output = Path(output).absolute() if output is not None else None
        self._here = f"{Path.cwd()}{os.sep}"  # the program may change the working directory
        self._alone = form != "text" and output is None
        self._written: tuple[object, ...] = ()
        self._stdout: int | None = None

    @contextlib.contextmanager
    def keeping_stdout(self) -> Iterator[None]:
        """In a block, redirect stdout of this process and its children to stderr if stdout is only for the report."""
        with contextlib.ExitStack() as at_end:
            if self._alone:
                at_end.enter_context(contextlib.redirect_stdout(sys.stderr))
                with contextlib.suppress(OSError, ValueError):  # stdout may be closed, and stderr may not be a file
                    self._stdout, there = os.dup(1), os.dup2(sys.stderr.fileno(), 1)
                    at_end.callback(setattr, self, "_stdout", None)
                    at_end.callback(os.close, self._stdout)
                    at_end.callback(os.dup2, self._stdout, there)
            yield

    def write(self, report: Report, note: str = "") -> bool:
        """Write the report, with ``note`` added to its summary, if it differs from the last report that was written.

        Only text is written to stdout more than once. Return whether any finding has severity ``fail_on`` or higher.
        """
        shown = report.plain()
        shown.watched += note
        self._wanted.apply(shown)
        shown.findings = [
            replace(self._from_here(each), cause=each.cause and self._from_here(each.cause)) for each in shown.findings
        ]
        content = (shown.summary, *shown.findings)
        if content != self._written and not (self._written and self._alone):  # a second report would make JSON invalid
            self._put(format_report(shown, self._form))
        self._written = content
        return self._wanted.fails(shown.findings)

    def _from_here(self, located: _Place) -> _Place:
        return replace(located, file=located.file.removeprefix(self._here))

    def _put(self, text: str) -> None:
        if self._output is not None:
            try:
                self._output.write_text(f"{text}\n", encoding="utf-8")
            except OSError as error:  # print the report instead, so that it is not lost
                print(f"gradlab doctor: --output {self._output}: {error.strerror}\n{text}", file=sys.stderr, flush=True)
        elif self._stdout is not None:  # the program still runs, with its output redirected
            try:
                os.write(self._stdout, f"{text}\n".encode())
            except BrokenPipeError:
                _discard_output(self._stdout)
        else:
            write_stdout(f"{text}\n" if self._alone else f"\n{text}\n")


def write_stdout(text: str = "") -> bool:
    """Print and flush ``text``, and return whether standard output is still open and, if it is a pipe, still read."""
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        _discard_output(sys.stdout.fileno())
        return False
    except ValueError:  # the program has closed it
        return False
    return True


def _discard_output(file: int) -> None:
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), file)

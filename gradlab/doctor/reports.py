"""Which findings count, and the report in the forms of other tools: JSON, SARIF 2.1.0, GitHub's annotations.

SARIF: https://docs.oasis-open.org/sarif/sarif/v2.1.0/; GitHub's workflow commands:
https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..formatting import project_address
from .baseline import Baseline
from .finding import SEVERITIES, Cause, Finding, Report, Severity
from .source.syntax import edited, source_line

_COMMENT = re.compile(r"#\s*gradlab:\s*ignore\[([^\]]*)\]")


@dataclass(frozen=True)
class FindingFilter:
    """What is reported, and from which severity on a run has failed."""

    select: tuple[str, ...] = ()
    """The codes that are reported; none means all."""
    ignore: tuple[str, ...] = ()
    """Codes that are not reported."""
    fail_on: Severity = "warning"
    """The mildest severity that makes the exit code 1."""
    baseline: str = ""
    """A file of --write-baseline; what it knows is not reported."""

    def __post_init__(self) -> None:
        """Raise ValueError for a code or a severity that there is not, and for a baseline that cannot be read."""
        from .rules import check_codes  # torch, at last

        for name in ("select", "ignore"):
            check_codes(getattr(self, name), name)
        if self.fail_on not in SEVERITIES:
            raise ValueError(f"fail-on must be one of {', '.join(SEVERITIES)}, got {self.fail_on!r}")
        _ = self._known

    @cached_property
    def _known(self) -> Baseline | None:
        return Baseline(Path(self.baseline)).read() if self.baseline else None

    def apply(self, report: Report, name_of: Callable[[str], str] = str) -> int:
        """Take out of a report what does not count, and count in it what comments and the baseline take out.

        Returns how many entries of the baseline were not found any more. ``name_of(file)`` returns what to call a file.
        """
        from .rules import asked_codes

        wanted = self.select or set(report.codes) - asked_codes()
        asked = [one for one in report.findings if one.code in wanted and one.code not in self.ignore]
        report.findings = [finding for finding in asked if not _ignored_by_comment(finding)]
        report.ignored, gone = len(asked) - len(report.findings), 0
        if self._known is not None:
            there, report.baseline = len(report.findings), self._known.path.name
            report.findings, gone = self._known.unknown(report.findings, name_of)
            report.known = there - len(report.findings)
        return gone

    def fails(self, findings: Sequence[Finding]) -> bool:
        """Is one of the findings grave enough?"""
        return any(SEVERITIES.index(one.severity) <= SEVERITIES.index(self.fail_on) for one in findings)


def _ignored_by_comment(finding: Finding) -> bool:
    """Is there ``# gradlab: ignore[code, code] reason`` at the end of the line, or of the one to edit?"""
    places = {(place.file, place.line) for place in (finding, finding.cause) if place is not None and place.line}
    comments = [comment for place in places if (comment := _COMMENT.search(source_line(place)))]
    return any(finding.code == code.strip() for comment in comments for code in comment[1].split(","))


def read_settings(beside: Path) -> dict[str, Any]:
    """Return ``[tool.gradlab.doctor]`` of the nearest ``pyproject.toml``, as arguments of a FindingFilter.

    It is looked for in the folder of ``beside`` and in those above. Raises ValueError, with the file, for a key or a
    value that is not allowed.
    """
    for folder in beside.absolute().parents:
        file = folder / "pyproject.toml"
        if file.is_file():
            try:
                table = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("gradlab", {})
                return _checked(table.get("doctor", {}), folder)
            except (tomllib.TOMLDecodeError, AttributeError, ValueError) as error:
                raise ValueError(f"{file}: {error}") from None
    return {}


def _checked(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    allowed = {one.name.replace("_", "-"): one.name for one in fields(FindingFilter)}
    settings: dict[str, Any] = {}
    for key, value in table.items():
        if key not in allowed:
            raise ValueError(f"tool.gradlab.doctor has no key {key!r}; it has {', '.join(allowed)}")
        if key in ("select", "ignore"):
            if not isinstance(value, list) or not all(isinstance(code, str) for code in value):
                raise ValueError(f"tool.gradlab.doctor.{key} must be a list of codes, got {value!r}")
            value = tuple(value)
        elif key == "baseline":
            if not isinstance(value, str):
                raise ValueError(f"tool.gradlab.doctor.baseline must be the name of a file, got {value!r}")
            value = str(folder / value)
        settings[allowed[key]] = value
    FindingFilter(**settings | {"baseline": ""})  # that file may be about to be written
    return settings


def format_report(report: Report, form: str, version: str = "0") -> str:
    """Return the report in one of FORMATS; ``version`` is that of the tool, which SARIF names."""
    return _WRITERS[form](report, version)


_LEVELS = {"error": "error", "warning": "warning", "hint": "note"}
_GITHUB = {"error": "error", "warning": "warning", "hint": "notice"}


def _sarif(report: Report, version: str) -> str:
    kinds = {finding.code: finding for finding in report.findings}
    driver: dict[str, Any] = {"name": "gradlab doctor", "version": version, "rules": [*map(_kind, kinds.values())]}
    if address := project_address():
        driver["informationUri"] = address
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, list(kinds).index(finding.code)) for finding in report.findings],
        "properties": {name: getattr(report, name) for name in ("watched", "judged", "ignored", "known")},
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2)


def _kind(finding: Finding) -> dict[str, Any]:
    address = {"helpUri": finding.lesson_address} if finding.lesson_address else {}
    help_ = {"text": f"Lesson: {finding.lesson}"}
    return {"id": finding.code, "shortDescription": {"text": finding.message}, "help": help_, **address}


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message} Seen: {finding.evidence}. Fix: {finding.fix}"},
    }
    if finding.line:
        result["locations"] = [{"physicalLocation": _place(finding.file, {"startLine": finding.line})}]
    if (cause := finding.cause) is not None:
        region = {"startLine": cause.line}
        if cause.end_column:
            region |= {"startColumn": cause.column + 1, "endColumn": cause.end_column + 1}
        result["relatedLocations"] = [{"physicalLocation": _place(cause.file, region), "message": {"text": cause.what}}]
        if finding.fix_is_line and (change := _replacement(cause, finding.fix)):
            changes = [_place(cause.file) | {"replacements": [change]}]
            result["fixes"] = [{"description": {"text": f"{cause.what}: {finding.fix}"}, "artifactChanges": changes}]
    return result


def _place(file: str, region: dict[str, int] | None = None) -> dict[str, Any]:
    path = Path(file)  # inside the folder where the tool ran it is relative already
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    return {"artifactLocation": {"uri": uri}} | ({"region": region} if region else {})


def _replacement(cause: Cause, line: str) -> dict[str, Any] | None:
    """Return a line of Python as SARIF's change of a region, which is empty where the line is new; None without it."""
    after = edited(cause, line)
    if after is None:
        return None
    number, there = cause.line, source_line((cause.file, cause.line)).rstrip("\r\n")
    text = after.split("\n")[number - (cause.insert != "below")]  # with the blanks before it
    start, end, text = {
        "": (1, len(there) + 1, text),
        "above": (1, 1, f"{text}\n"),
        "below": (len(there) + 1, len(there) + 1, f"\n{text}"),
    }[cause.insert]
    region = {"startLine": number, "startColumn": start, "endColumn": end}  # counted from 1
    return {"deletedRegion": region, "insertedContent": {"text": text}}


def _github(report: Report, version: str) -> str:
    lines = [_annotation(finding) for finding in report.findings]
    if not lines or not report.judged or report.ignored or report.known:
        lines.append(f"::{'notice' if report.judged else 'warning'}::{_escaped(report.summary)}")
    return "\n".join(lines)


def _annotation(finding: Finding) -> str:
    place = f"file={_property(Path(finding.file).as_posix())},line={finding.line}," if finding.line else ""
    cause = finding.cause
    edit = f"\n{f'Insert {cause.insert}' if cause.insert else 'Edit'}: {cause.file}:{cause.line}" if cause else ""
    words = f"{finding.message}\nSeen: {finding.evidence}{edit}\nFix: {finding.fix}\nLesson: {finding.lesson}"
    return f"::{_GITHUB[finding.severity]} {place}title={_property(finding.code)}::{_escaped(words)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


_WRITERS: dict[str, Callable[[Report, str], str]] = {
    "text": lambda report, version: report.text,
    "json": lambda report, version: json.dumps(report.as_dict(), indent=2),
    "sarif": _sarif,
    "github": _github,
}
FORMATS = tuple(_WRITERS)

"""The report in the forms that other tools read: JSON, SARIF 2.1.0, and the annotations of GitHub's workflows.

SARIF: https://docs.oasis-open.org/sarif/sarif/v2.1.0/; GitHub's workflow commands:
https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...formatting import project_address
from ..finding import Finding, Report

FORMATS = ("text", "json", "sarif", "github")


def format_report(report: Report, form: str, version: str = "0") -> str:
    """Return the report in one of FORMATS; ``version`` is that of the tool, which SARIF names."""
    return _WRITERS[form](report, version)


def _json(report: Report, version: str) -> str:
    return json.dumps(report.as_dict(), indent=2)


_LEVELS = {"error": "error", "warning": "warning", "hint": "note"}
_GITHUB = {"error": "error", "warning": "warning", "hint": "notice"}


def _sarif(report: Report, version: str) -> str:
    kinds = {finding.code: finding for finding in report.findings}
    rules = [_kind(code, finding) for code, finding in kinds.items()]
    driver: dict[str, Any] = {"name": "gradlab doctor", "version": version, "rules": rules}
    if address := project_address():
        driver["informationUri"] = address
    run = {
        "tool": {"driver": driver},
        "results": [_result(finding, list(kinds).index(finding.code)) for finding in report.findings],
        "properties": {"watched": report.watched, "judged": report.judged},
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2)


def _kind(code: str, finding: Finding) -> dict[str, Any]:
    help_: dict[str, Any] = {"help": {"text": f"Lesson: {finding.lesson}"}}
    if finding.lesson_address:
        help_["helpUri"] = finding.lesson_address
    return {"id": code, "shortDescription": {"text": finding.message}, **help_}


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message} Seen: {finding.evidence}. Fix: {finding.fix}"},
    }
    if finding.line:
        place = {"artifactLocation": {"uri": _encoded(finding.file)}, "region": {"startLine": finding.line}}
        result["locations"] = [{"physicalLocation": place}]
    if (cause := finding.cause) is not None:
        region = {"startLine": cause.line}
        if cause.end_column:  # counted from 1
            region |= {"startColumn": cause.column + 1, "endColumn": cause.end_column + 1}
        place = {"artifactLocation": {"uri": _encoded(cause.file)}, "region": region}
        result["relatedLocations"] = [{"physicalLocation": place, "message": {"text": "edit here"}}]
    return result


def _encoded(file: str) -> str:
    """Return a path as a URI of SARIF: blanks and the like are written with percent signs."""
    uri = _uri(file)
    return uri if "://" in uri else quote(uri)


def _uri(file: str) -> str:
    """Return a path as SARIF wants it: relative to where the tool ran, where that is possible."""
    path = Path(file)
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_uri() if path.is_absolute() else path.as_posix()


def _github(report: Report, version: str) -> str:
    lines = [_annotation(finding) for finding in report.findings]
    if not lines or not report.judged:
        lines.append(f"::{'notice' if report.judged else 'warning'}::{_escaped(report.watched)}")
    return "\n".join(lines)


def _annotation(finding: Finding) -> str:
    title = f"title={_property(finding.code)}"
    place = f"file={_property(_uri(finding.file))},line={finding.line}," if finding.line else ""
    edit = f"\nEdit: {_uri(finding.cause.file)}:{finding.cause.line}" if finding.cause is not None else ""
    words = f"{finding.message}\nSeen: {finding.evidence}{edit}\nFix: {finding.fix}\nLesson: {finding.lesson}"
    return f"::{_GITHUB[finding.severity]} {place}{title}::{_escaped(words)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


_WRITERS: dict[str, Callable[[Report, str], str]] = {
    "text": lambda report, version: report.text,
    "json": _json,
    "sarif": _sarif,
    "github": _github,
}

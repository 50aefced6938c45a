"""Which findings count, and the report in the forms of other tools: JSON, SARIF 2.1.0, GitHub's annotations.

SARIF: https://docs.oasis-open.org/sarif/sarif/v2.1.0/; GitHub's workflow commands:
https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..formatting import project_address
from .finding import SEVERITIES, Finding, Report, Severity
from .source.syntax import source_line

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

    def __post_init__(self) -> None:
        """Raise ValueError for a code or a severity that there is not."""
        for name in ("select", "ignore"):
            for code in getattr(self, name):
                check_code(code, name)
        if self.fail_on not in SEVERITIES:
            raise ValueError(f"fail-on must be one of {', '.join(SEVERITIES)}, got {self.fail_on!r}")

    def keeps(self, finding: Finding) -> bool:
        """Is this finding reported?"""
        if finding.code in self.ignore or (self.select and finding.code not in self.select):
            return False
        cause = finding.cause
        places = [(finding.file, finding.line), *([(cause.file, cause.line)] if cause is not None else [])]
        return not any(finding.code in codes_ignored_on(*place) for place in places)

    def fails(self, findings: Sequence[Finding]) -> bool:
        """Is one of the findings grave enough?"""
        grave = SEVERITIES[: SEVERITIES.index(self.fail_on) + 1]
        return any(finding.severity in grave for finding in findings)


def codes_ignored_on(file: str, line: int) -> Collection[str]:
    """Return the codes in ``# gradlab: ignore[code, code] reason`` at the end of a line."""
    comment = _COMMENT.search(source_line((file, line))) if line else None
    return {code.strip() for code in comment[1].split(",")} if comment else ()


def check_code(code: str, where: str) -> None:
    """Raise ValueError, with the nearest code, if there is no such code."""
    known = sorted(known_codes())
    if code not in known:
        near = difflib.get_close_matches(code, known, 1)
        hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
        raise ValueError(f"{where}: there is no code {code!r}{hint}")


def known_codes() -> set[str]:
    """Return the names of all codes."""
    from .rules import RULES, Rule
    from .rules.known_errors import KnownErrors

    kinds: tuple[type[Rule], ...] = (*RULES, KnownErrors)
    return {code.name for kind in kinds for code in kind.codes}


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
                return _checked(table.get("doctor", {}))
            except (tomllib.TOMLDecodeError, AttributeError, ValueError) as error:
                raise ValueError(f"{file}: {error}") from None
    return {}


def _checked(table: dict[str, Any]) -> dict[str, Any]:
    allowed = {one.name.replace("_", "-"): one.name for one in fields(FindingFilter)}
    settings: dict[str, Any] = {}
    for key, value in table.items():
        if key not in allowed:
            raise ValueError(f"tool.gradlab.doctor has no key {key!r}; it has {', '.join(allowed)}")
        if key == "fail-on":
            settings["fail_on"] = value
        elif isinstance(value, list) and all(isinstance(code, str) for code in value):
            settings[allowed[key]] = tuple(value)
        else:
            raise ValueError(f"tool.gradlab.doctor.{key} must be a list of codes, got {value!r}")
    FindingFilter(**settings)
    return settings


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

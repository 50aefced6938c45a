"""Which findings count: chosen by code, ignored by a comment on their line, set in ``pyproject.toml``."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..finding import SEVERITIES, Finding, Severity
from ..source.source_search import source_line

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
    from ..known_errors import KnownErrors
    from ..rules import RULES, Rule

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

"""The reports of several processes on their way to the one that prints them, and what they say together."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...formatting import join_words
from ..finding import SEVERITIES, Cause, Finding, Report

ITSELF = "the program itself"
"""The name of the process that the doctor was started in."""
_ALIKE = 1e-3  # of the larger one; all-reduce gives each rank the same sum
_MOST_LISTED = 8  # names
_PENDING, _DONE = ".pending", ".json"


@dataclass
class ChildReport:
    """What one process has to say."""

    name: str
    """What to call it, such as "rank 1"."""
    report: Report
    trained: bool = True
    gradients: dict[str, float] = field(default_factory=dict)
    """Norms of the gradients that DistributedDataParallel makes alike: number of an update -> norm."""


def expect_report(path: Path, name: str) -> None:
    """Note that a process is about to start; its report is to be at ``path``."""
    path.with_suffix(_PENDING).write_text(name, encoding="utf-8")


def expect_no_report(path: Path) -> None:
    """Note that a process has nothing to report: it trained nothing."""
    path.with_suffix(_PENDING).unlink(missing_ok=True)


def write_report(path: Path, child: ChildReport) -> None:
    """Write the report of a process, whole or not at all."""
    expect_no_report(path)
    data = {"name": child.name, **child.report.as_dict(), "trained": child.trained, "gradients": child.gradients}
    half = path.with_suffix(".half")
    half.write_text(json.dumps(data), encoding="utf-8")
    os.replace(half, path.with_suffix(_DONE))


def read_reports(folder: Path) -> tuple[list[ChildReport], list[str]]:
    """Return the reports, those of the lowest ranks first, and the names of processes that left none."""
    found = [_read(path) for path in folder.glob(f"*{_DONE}")]
    lost = [path.read_text(encoding="utf-8") for path in folder.glob(f"*{_PENDING}")]
    return sorted(found, key=lambda child: _natural(child.name)), sorted(lost, key=_natural)


def _read(path: Path) -> ChildReport:
    data = json.loads(path.read_text(encoding="utf-8"))
    findings = [Finding(**one | {"cause": Cause(**one["cause"]) if one["cause"] else None}) for one in data["findings"]]
    report = Report(findings, data["watched"], data["missing"], data["judged"])
    return ChildReport(data["name"], report, data["trained"], data["gradients"])


def _natural(name: str) -> str:
    """Sort "rank 10" after "rank 9"."""
    return re.sub(r"\d+", lambda number: number[0].zfill(9), name)


def merge_reports(children: Sequence[ChildReport], lost: Sequence[str] = ()) -> Report:
    """Return one report of one or more processes, those that trained nothing left out if others did.

    A finding that only some of them have says which.
    """
    children = [child for child in children if child.trained] or children[:1]
    seen: dict[tuple[str, str, int], tuple[Finding, list[str]]] = {}
    for child in children:
        for finding in child.report.findings:
            seen.setdefault((finding.code, finding.file, finding.line), (finding, []))[1].append(child.name)
    findings = [
        finding
        if len(set(names)) == len(children)
        else replace(finding, evidence=f"{finding.evidence} (only in {_listed(names)} of {len(children)} processes)")
        for finding, names in seen.values()
    ]
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    words = [_watched(children), *_unlike_gradients(children)]
    if lost:
        words.append(f"No report came from {_listed(lost)}, which ended before it could be written.")
    missing = children[0].report.missing
    return Report(findings, " ".join(words), missing, not lost and all(child.report.judged for child in children))


def _watched(children: Sequence[ChildReport]) -> str:
    alike: dict[str, list[str]] = {}
    for child in children:
        alike.setdefault(child.report.watched, []).append(child.name)
    if [child.name for child in children] == [ITSELF]:
        return children[0].report.watched
    each = "each of " if len(alike) == 1 < len(children) else ""
    return " ".join(f"In {each}{_listed(names)}: {watched}" for watched, names in alike.items())


def _unlike_gradients(children: Sequence[ChildReport]) -> list[str]:
    """Return a sentence on the first update whose gradients the ranks do not share, none if they share all."""
    first = children[0]
    for update, one in first.gradients.items():
        for other in children[1:]:
            another = other.gradients.get(update, one)
            if abs(one - another) > _ALIKE * max(one, another):
                return [
                    f"At update {update} the gradients of {first.name} and {other.name} differ (norms {one:.4g} and "
                    f"{another:.4g}), although the model is in DistributedDataParallel: a pass went past the wrapper, "
                    "or ran inside no_sync()."
                ]
    return []


def _listed(names: Sequence[str]) -> str:
    """Write names as words, those with the same first word together: "ranks 0, 1 and 3"."""
    names, start = list(dict.fromkeys(names)), ""
    if len(names) > 1 and all(name.startswith("rank ") for name in names):
        names, start = [name.removeprefix("rank ") for name in names], "ranks "
    if len(names) > _MOST_LISTED:
        names = [*names[:_MOST_LISTED], "...", names[-1]]
    return start + join_words(names)

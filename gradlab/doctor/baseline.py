"""The baseline: a file of findings that are known, so that only new ones are reported.

A finding is known again by its code, its file, and the text of its line: the number of the line may change.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from .finding import Finding
from .source.syntax import source_line

_PARTS = ("file", "code", "text")
"""What is kept of a finding: its file, relative to the folder of the baseline, its code, and its line, stripped."""


class Baseline:
    """The known findings, and how often there is each."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._known: Counter[tuple[str, ...]] = Counter()

    def read(self) -> Baseline:
        """Read the file; raises ValueError, with its name and the reason, if that is not possible."""
        try:
            for one in json.loads(self.path.read_text(encoding="utf-8"))["findings"]:
                self._known[tuple(str(one[part]) for part in _PARTS)] += int(one["count"])
        except OSError as error:
            raise ValueError(f"{self.path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise ValueError(f"{self.path}: not a file that --write-baseline has written ({reason})") from None
        return self

    def write(self, findings: Sequence[Finding], name_of: Callable[[str], str]) -> None:
        """Write these findings as the known ones; ``name_of(file)`` returns what to call a cell of a notebook."""
        counts = Counter(self._entry(finding, name_of) for finding in findings)
        entries = [dict(zip(_PARTS, entry, strict=True)) | {"count": count} for entry, count in sorted(counts.items())]
        self.path.write_text(json.dumps({"findings": entries}, indent=2) + "\n", encoding="utf-8")

    def unknown(self, findings: Sequence[Finding], name_of: Callable[[str], str]) -> tuple[list[Finding], int]:
        """Return the findings that are not known, and how many entries of the file have none any more."""
        left, unknown = self._known.copy(), []
        for finding in findings:
            entry = self._entry(finding, name_of)
            if left[entry] > 0:
                left[entry] -= 1
            else:
                unknown.append(finding)
        return unknown, sum(left[entry] == count for entry, count in self._known.items())

    def _entry(self, finding: Finding, name_of: Callable[[str], str]) -> tuple[str, ...]:
        file = name_of(finding.file)
        if os.path.isabs(file):
            file = Path(os.path.relpath(file, self.path.parent)).as_posix()
        return file, finding.code, source_line((finding.file, finding.line)).strip()

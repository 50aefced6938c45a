"""Listening: the doctor beside a loop that runs in slices and is changed while it runs, as in the Lab."""

from __future__ import annotations

from .finding import Finding
from .judge import Judge

_RECENT = 40  # backward passes; two of the longest windows of a Recipe


class Listener:
    """``with listener:`` around each slice of work; ``now()`` says what is wrong at present."""

    def __init__(self) -> None:
        """Start with nothing heard."""
        self._judge = Judge()

    def __enter__(self) -> Listener:
        """Listen to a slice."""
        self._judge.recorder.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Judge what was heard."""
        self._judge.recorder.stop()

    def now(self) -> list[Finding]:
        """Return what was found lately: a mistake that is mended is forgotten after some batches."""
        case = self._judge.case
        least = case.recorder.seen - _RECENT
        return [finding for finding in self._judge.findings() if case.seen[finding.code, _site(finding)] > least]

    def words(self) -> str:
        """Say in a line or two what is wrong at present, hints left out; "" if nothing is."""
        return " ".join(
            f"Line {finding.line}: {finding.message} Fix: {finding.fix}"
            for finding in self.now()
            if finding.severity != "hint"
        )


def _site(finding: Finding) -> tuple[str, int]:
    return finding.file, finding.line

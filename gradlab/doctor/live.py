"""The doctor beside a loop that runs in slices and is changed while it runs, as in the Lab."""

from __future__ import annotations

from .finding import Finding
from .rule_runner import RuleRunner

_RECENT = 40  # backward passes; two of the longest windows of a Recipe


class LiveDoctor:
    """``with doctor:`` around each slice of work; ``findings()`` says what is wrong at present."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._runner = RuleRunner()

    def __enter__(self) -> LiveDoctor:
        """Listen to a slice."""
        self._runner.listener.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Judge the slice."""
        self._runner.listener.stop()

    def findings(self) -> list[Finding]:
        """Return what was found lately: a mistake that is mended is forgotten after some batches."""
        context = self._runner.context
        least = context.log.backwards - _RECENT
        return [finding for finding in self._runner.findings() if context.seen[finding.code, _site(finding)] > least]

    def text(self) -> str:
        """Say in a line or two what is wrong at present, hints left out; "" if nothing is."""
        return " ".join(
            f"Line {finding.line}: {finding.message} Fix: {finding.fix}"
            for finding in self.findings()
            if finding.severity != "hint"
        )


def _site(finding: Finding) -> tuple[str, int]:
    return finding.file, finding.line

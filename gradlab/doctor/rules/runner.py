"""All rules on one loop: events go to the state of the gradients, and facts from there to the rules."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ..events import Event
from ..finding import SEVERITIES, Finding
from ..listeners.torch_listener import TorchListener
from .base import HEARD, RuleContext


class RuleRunner:
    """Follows a loop with all rules."""

    def __init__(self) -> None:
        from . import RULES  # which imports this module, too

        self.listener = TorchListener(self.take)
        self.context = RuleContext(self.listener.log)
        self._rules = [rule(self.context) for rule in RULES]
        self._hearers: dict[type, list[Callable[[Any], None]]] = {
            fact: [getattr(one, name) for one in self._rules if hasattr(one, name)] for name, fact in HEARD.items()
        }

    def end(self, *, normal: bool) -> None:
        """The watch is over; ``normal`` is False if an exception ended it."""
        for rule in self._rules:
            rule.end(normal=normal)

    def take(self, events: list[Event]) -> None:
        """Go through events in order."""
        follow, hearers = self.context.state.follow, self._hearers
        for event in events:
            for fact in follow(event):
                for hear in hearers[type(fact)]:
                    hear(fact)

    def findings(self, also: Collection[str] = ()) -> list[Finding]:
        """Return what was found, the gravest first, in the order in which it was seen.

        Codes that have to be asked for are left out but for those of ``also``.
        """
        from . import opt_in_codes

        left_out = opt_in_codes().difference(also)
        found = [finding for finding in self.context.findings.values() if finding.code not in left_out]
        return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


_RECENT = 40  # backward passes; two of the longest windows of a Recipe


class LiveDoctor:
    """``with doctor:`` around each slice of work; ``findings()`` says what is wrong at present."""

    def __init__(self) -> None:
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
        seen, least = self._runner.context.seen, self._runner.context.log.passes.count - _RECENT
        return [one for one in self._runner.findings() if seen[one.code, (one.file, one.line)] > least]

    def text(self) -> str:
        """Say in a line or two what is wrong at present, hints left out; "" if nothing is."""
        return " ".join(
            f"Line {finding.line}: {finding.message} Fix: {finding.fix}"
            for finding in self.findings()
            if finding.severity != "hint"
        )

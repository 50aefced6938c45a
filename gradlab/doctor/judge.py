"""The judge: reads the events through the book and lets every rule have its say."""

from __future__ import annotations

from typing import Any

from .book import Book
from .events import Forward, Made, Mode, ScalerUpdate, Schedule
from .finding import SEVERITIES, Finding
from .recorder import Recorder
from .rules import RULES, Case, Rule


class Judge:
    """All rules on one case."""

    def __init__(self) -> None:
        """Start with an empty book."""
        self.recorder = Recorder(self.hear)
        self.case = Case(self.recorder)
        self._rules = [rule(self.case) for rule in RULES]
        self._book = self.case.book = Book(self)
        names = (name for name in vars(Rule) if not name.startswith("_"))
        for name in names:  # a fact goes to the rules that want it, and costs the others nothing
            wanted = [
                getattr(rule, name) for rule in self._rules if getattr(type(rule), name) is not getattr(Rule, name)
            ]
            setattr(self, name, _teller(wanted))

    made: Any
    schedule: Any
    mode: Any
    scaler_update: Any
    forward: Any
    end: Any

    def hear(self, events: list[Any]) -> None:
        """Go through events in order."""
        for event in events:
            kind = type(event)
            if kind is Made:
                self.case.made[event.optimizer] = event
                self._book._made(event)
            elif kind is Schedule:
                self.schedule(event)
            elif kind is ScalerUpdate:
                self.scaler_update(event)
            elif kind is Mode:
                self.mode(event)
            elif kind is Forward:
                self._book.called(event)
                self.forward(event)
            else:
                self._book.take(event)

    def findings(self) -> list[Finding]:
        """Return what was found, the gravest first, in the order in which it was seen."""
        return sorted(self.case.findings.values(), key=lambda finding: SEVERITIES.index(finding.severity))


def _teller(wanted: list[Any]) -> Any:
    if len(wanted) == 1:
        return wanted[0]

    def tell(*fact: Any, **more: Any) -> None:
        for hear in wanted:
            hear(*fact, **more)

    return tell

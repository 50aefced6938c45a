"""The judge: reads the events through the book and lets every rule have its say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec

from .book import Book
from .events import (
    Added,
    Backward,
    Clear,
    Clip,
    Edit,
    Event,
    Forward,
    Made,
    Mode,
    Reused,
    ScalerStep,
    ScalerUpdate,
    Schedule,
    Step,
    Unscale,
)
from .finding import SEVERITIES, Finding
from .recorder import Recorder
from .rules import RULES, Case, Rule

_P = ParamSpec("_P")


class Judge:
    """All rules on one case."""

    def __init__(self) -> None:
        """Start with an empty book."""
        self.recorder = Recorder(self.hear)
        self.case = Case(self.recorder)
        rules = [rule(self.case) for rule in RULES]
        self.backward = _each(rules, Rule.backward)
        self.verified = _each(rules, Rule.verified)
        self.doubtful = _each(rules, Rule.doubtful)
        self.adding = _each(rules, Rule.adding)
        self.step = _each(rules, Rule.step)
        self.scaler_step = _each(rules, Rule.scaler_step)
        self.scaler_update = _each(rules, Rule.scaler_update)
        self.clip = _each(rules, Rule.clip)
        self.made = _each(rules, Rule.made)
        self.schedule = _each(rules, Rule.schedule)
        self.mode = _each(rules, Rule.mode)
        self.forward = _each(rules, Rule.forward)
        self.end = _each(rules, Rule.end)
        book = self.case.book = Book(self)
        self._handlers: dict[type[Event], Callable[[Any], None]] = {
            Added: book.added,
            Backward: book.backward,
            Clear: book.clear,
            Clip: book.clip,
            Edit: book.edit,
            Forward: book.called,
            Made: book.made,
            Mode: self.mode,
            Reused: book.reused,
            ScalerStep: book.scaler_step,
            ScalerUpdate: self.scaler_update,
            Schedule: self.schedule,
            Step: book.step,
            Unscale: book.unscale,
        }

    def hear(self, events: list[Event]) -> None:
        """Go through events in order."""
        handlers = self._handlers
        for event in events:
            handlers[type(event)](event)

    def findings(self) -> list[Finding]:
        """Return what was found, the gravest first, in the order in which it was seen."""
        return sorted(self.case.findings.values(), key=lambda finding: SEVERITIES.index(finding.severity))


def _each(rules: Sequence[Rule], fact: Callable[Concatenate[Any, _P], None]) -> Callable[_P, None]:
    """Return a function that tells a fact, a method of Rule, to the rules that override it."""
    name = fact.__name__
    wanted: list[Callable[_P, None]] = [getattr(rule, name) for rule in rules if getattr(type(rule), name) is not fact]
    if len(wanted) == 1:
        return wanted[0]

    def tell(*args: _P.args, **kwargs: _P.kwargs) -> None:
        for hear in wanted:
            hear(*args, **kwargs)

    return tell

"""All rules on one loop: events go to the state of the gradients, and facts from there to the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec

from .events import (
    Added,
    Backward,
    Clear,
    Clip,
    Event,
    Forward,
    GradEdited,
    Mode,
    OptimizerMade,
    ParamSlotReused,
    ScalerStep,
    ScalerUpdate,
    Schedule,
    Step,
    Unscale,
)
from .finding import SEVERITIES, Finding
from .rules import RULES, Rule, RuleContext
from .state.grad_state import GradState
from .state.repeats import RepeatFilter
from .state.step_history import StepHistory
from .torch_listener import TorchListener

_P = ParamSpec("_P")


class RuleRunner:
    """Follows a loop with all rules."""

    def __init__(self) -> None:
        self.listener = TorchListener(self.on_events)
        self.context = RuleContext(self.listener.log)
        self.history = StepHistory(self.context)
        rules = [*(rule(self.context) for rule in RULES), self.history]
        self.backward = _each(rules, Rule.backward)
        self.on_nonzero_grad = _each(rules, Rule.on_nonzero_grad)
        self.on_maybe_cleared = _each(rules, Rule.on_maybe_cleared)
        self.on_accumulate = _each(rules, Rule.on_accumulate)
        self.step = _each(rules, Rule.step)
        self.scaler_step = _each(rules, Rule.scaler_step)
        self.scaler_update = _each(rules, Rule.scaler_update)
        self.clip = _each(rules, Rule.clip)
        self.made = _each(rules, Rule.made)
        self.schedule = _each(rules, Rule.schedule)
        self.mode = _each(rules, Rule.mode)
        self.forward = _each(rules, Rule.forward)
        self._end = _each(rules, Rule.end)
        self._repeats = RepeatFilter(self._tell, self._repeated, self._size)
        state = self.context.state = GradState(self)
        self._handlers: dict[type[Event], Callable[[Any], None]] = {
            Added: state.added,
            Backward: state.backward,
            Clear: state.clear,
            Clip: state.clip,
            GradEdited: state.edit,
            Forward: state.called,
            OptimizerMade: state.made,
            Mode: self.mode,
            ParamSlotReused: state.reused,
            ScalerStep: state.scaler_step,
            ScalerUpdate: self.scaler_update,
            Schedule: self.schedule,
            Step: state.step,
            Unscale: state.unscale,
        }

    def on_events(self, events: list[Event]) -> None:
        """Take events, in order."""
        self._repeats.take(events)

    def end(self, *, normal: bool) -> None:
        """The watch is over; ``normal`` is False if an exception ended it."""
        self._repeats.release()
        self._end(normal=normal)

    def _size(self) -> int:
        """Return how much is inside the gradients; -1 once something was found, since rules count how often."""
        return -1 if self.context.findings else self.context.state.size()

    def _repeated(self, updates: list[list[Event]]) -> None:
        self.context.state.repeated(updates)
        self.history.repeated(updates)

    def _tell(self, events: list[Event]) -> None:
        """Go through events in order."""
        handlers = self._handlers
        for event in events:
            handlers[type(event)](event)

    def findings(self) -> list[Finding]:
        """Return what was found, the gravest first, in the order in which it was seen."""
        return sorted(self.context.findings.values(), key=lambda finding: SEVERITIES.index(finding.severity))


def _each(rules: Sequence[Rule], fact: Callable[Concatenate[Any, _P], None]) -> Callable[_P, None]:
    """Return a function that tells a fact, a method of Rule, to the rules that override it."""
    name = fact.__name__
    wanted: list[Callable[_P, None]] = [getattr(rule, name) for rule in rules if getattr(type(rule), name) is not fact]
    if len(wanted) == 1:
        return wanted[0]

    def tell(*args: _P.args, **kwargs: _P.kwargs) -> None:
        for on_events in wanted:
            on_events(*args, **kwargs)

    return tell


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

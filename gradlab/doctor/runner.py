"""Listeners and rules for one loop: listeners emit events, GradState turns events into facts, and rules judge facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from .._process import Patches
from .events import Backward, Event, GradEdited
from .finding import SEVERITIES, Finding
from .listeners.backward import BackwardListener
from .listeners.event_log import EventLog, Listener, never_raises
from .listeners.modules import ModuleListener
from .listeners.optimizers import OptimizerListener
from .listeners.scaling import ScalingListener
from .listeners.schedulers import SchedulerListener
from .rules import RULES
from .rules.base import FACTS, RuleContext

_LISTENERS = (BackwardListener, ModuleListener, OptimizerListener, ScalingListener, SchedulerListener)
_RECENT = 40  # backward passes: more than in two updates with the longest accumulation that a Recipe allows


class RuleRunner:
    """Runs all rules on a loop: ``start()`` patches PyTorch's functions, and ``stop()`` restores them."""

    def __init__(self) -> None:
        log = self.log = EventLog(self.take)
        self._listeners: list[Listener] = [listener(log) for listener in _LISTENERS]
        self._patches = Patches()
        self._handles: list[Any] = []
        self.counts: Counter[type] = Counter()
        self.looks = 0
        """Number of losses that were examined for flaws."""
        self.edits = 0
        """Number of times that the learner's code changed gradients, except to zeros."""
        self.context = RuleContext(log)
        self._rules = [rule(self.context) for rule in RULES]
        self._subscribers: dict[type, list[Callable[[Any], None]]] = {
            fact: [getattr(rule, name) for rule in self._rules if hasattr(rule, name)] for name, fact in FACTS.items()
        }

    def start(self) -> None:
        """Patch PyTorch's functions, and start to watch the thread that calls this method."""
        if not self.log.failure:
            self.log.thread.listen()
        for listener in self._listeners:
            listener.patch(self._patches)
        self._handles = [handle for listener in self._listeners for handle in listener.hooks()]

    def stop(self) -> None:
        """Restore PyTorch's functions, and judge the pending events."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._patches.undo()
        self.log.thread.ignore()
        self._finish()

    @never_raises
    def _finish(self) -> None:
        if not self.log.thread.runs_elsewhere():  # otherwise the watched thread may be writing to a .grad
            self.log.detect_changes()
        self.log.flush()

    def take(self, events: list[Event]) -> None:
        """Process events in order: rules receive the facts of an event before the event updates the state."""
        state, subscribers = self.context.state, self._subscribers
        self.counts.update(map(type, events))
        self.looks += sum(event.looked for event in events if type(event) is Backward)
        self.edits += sum(any(map(float, event.norms or ())) for event in events if type(event) is GradEdited)
        for event in events:
            for part in state.parts(event):
                fact = state.fact(part)
                for receive in subscribers.get(type(fact), ()):
                    receive(fact)
                state.take(part)

    def end(self, *, normal: bool) -> None:
        """Let the rules judge the watch as a whole; ``normal`` is False if it ended early or by an exception."""
        for rule in self._rules:
            rule.end(normal=normal)

    def findings(self) -> list[Finding]:
        """Return the findings, the most severe first; those of one severity are in the order of their detection."""
        return sorted(self.context.findings.values(), key=lambda finding: SEVERITIES.index(finding.severity))


class LiveDoctor:
    """A doctor that reports the current bugs of a loop that runs in slices, each slice inside ``with doctor:``."""

    def __init__(self) -> None:
        self._runner = RuleRunner()

    def __enter__(self) -> LiveDoctor:
        self._runner.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._runner.stop()

    def findings(self) -> list[Finding]:
        """Return the findings reported in the last ``_RECENT`` backward passes, so that a fixed bug disappears."""
        shown, least = self._runner.context.newest, self._runner.context.log.passes.count - _RECENT
        return [each for each in self._runner.findings() if shown[each.code, (each.file, each.line)] > least]

    def text(self) -> str:
        """Return the current errors and warnings in one line, or "" if there are none."""
        serious = [finding for finding in self.findings() if finding.severity != "hint"]
        return " ".join(f"Line {finding.line}: {finding.message} Fix: {finding.fix}" for finding in serious)

"""All listeners and all rules on one loop: listeners write events, the state makes facts of them, the rules judge."""

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


class RuleRunner:
    """Follows a loop with all rules; ``start()`` and ``stop()`` replace PyTorch's names and put them back."""

    def __init__(self) -> None:
        log = self.log = EventLog(self.take)
        self._listeners: list[Listener] = [listener(log) for listener in _LISTENERS]
        self._patches = Patches()
        self._handles: list[Any] = []
        self.counts: Counter[type] = Counter()
        """Number of events of each kind."""
        self.looks = 0
        """Number of losses that were looked at in detail."""
        self.edits = 0
        """The number of times that gradients were changed by hand, and not to zeros."""
        self.context = RuleContext(log)
        self._rules = [rule(self.context) for rule in RULES]
        self._subscribers: dict[type, list[Callable[[Any], None]]] = {
            fact: [getattr(rule, name) for rule in self._rules if hasattr(rule, name)] for name, fact in FACTS.items()
        }

    def start(self) -> None:
        """Begin to listen, to the thread that calls this."""
        if not self.log.failure:
            self.log.thread.listen()
        for listener in self._listeners:
            listener.patch(self._patches)
        self._handles = [handle for listener in self._listeners for handle in listener.hooks()]

    def stop(self) -> None:
        """Put everything back, and judge what is left."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._patches.undo()
        self.log.thread.ignore()
        self._finish()

    @never_raises
    def _finish(self) -> None:
        if not self.log.thread.runs_elsewhere():  # it may be writing to a .grad just now
            self.log.detect_changes()
        self.log.flush()

    def take(self, events: list[Event]) -> None:
        """Go through events in order: rules hear each before the state takes it in."""
        state, subscribers = self.context.state, self._subscribers
        self.counts.update(map(type, events))
        self.looks += sum(event.looked for event in events if type(event) is Backward)
        self.edits += sum(any(map(float, event.norms)) for event in events if type(event) is GradEdited)
        for event in events:
            for part in state.parts(event):
                fact = state.fact(part)
                for hear in subscribers.get(type(fact), ()):
                    hear(fact)
                state.take(part)

    def end(self, *, normal: bool) -> None:
        """The watch is over; ``normal`` is False if an exception ended it."""
        for rule in self._rules:
            rule.end(normal=normal)

    def findings(self) -> list[Finding]:
        """Return the findings, the gravest first, else in their order."""
        return sorted(self.context.findings.values(), key=lambda finding: SEVERITIES.index(finding.severity))


_RECENT = 40  # backward passes; two of the longest windows of a Recipe


class LiveDoctor:
    """``with doctor:`` around each slice of work; ``findings()`` says what is wrong at present."""

    def __init__(self) -> None:
        self._runner = RuleRunner()

    def __enter__(self) -> LiveDoctor:
        self._runner.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._runner.stop()

    def findings(self) -> list[Finding]:
        """Return the newest findings: a bug that is fixed is forgotten after some batches."""
        shown, least = self._runner.context.newest, self._runner.context.log.passes.count - _RECENT
        return [each for each in self._runner.findings() if shown[each.code, (each.file, each.line)] > least]

    def text(self) -> str:
        """Return the present bugs in a line or two, without hints; "" without any."""
        return " ".join(
            f"Line {finding.line}: {finding.message} Fix: {finding.fix}"
            for finding in self.findings()
            if finding.severity != "hint"
        )

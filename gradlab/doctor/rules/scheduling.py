"""Learning-rate schedulers: too early, or too often."""

from __future__ import annotations

from typing import Any

from ..finding import Code
from .base import Rule, RuleContext

_SETTLED = 6  # steps after which it is clear whether a scheduler is too fast


class _Schedule:
    """How one scheduler and its optimizer have taken turns."""

    def __init__(self, optimizer: int, base: int) -> None:
        """Start at ``base`` steps of the optimizer."""
        self.optimizer, self.base = optimizer, base
        self.count = 0
        self.early = 0  # before the optimizer's first step
        self.early_site: Any = None
        self.extra = 0
        self.at = base  # step_calls when it stepped last
        self.told = self.fast = False
        self.sites: set[Any] = set()  # lines of all steps but the early ones
        self.passes = 0  # number of the newest backward pass then


class Scheduling(Rule):
    """A scheduler that steps before the optimizer, or more often than it."""

    SCHEDULER_OUTPACES_OPTIMIZER = Code(
        "scheduler-outpaces-optimizer", "07_gradient_accumulation", "The scheduler counts updates"
    )
    SCHEDULER_BEFORE_OPTIMIZER = Code(
        "scheduler-before-optimizer", "07_gradient_accumulation", "The scheduler counts updates"
    )

    def __init__(self, context: RuleContext) -> None:
        """Start with no schedulers."""
        super().__init__(context)
        self._schedules: dict[int, _Schedule] = {}

    def schedule(self, event: Any) -> None:
        """Compare with the steps of its optimizer so far."""
        step_calls = self.context.state.step_calls.get(event.optimizer, 0)
        schedule = self._schedules.setdefault(event.scheduler, _Schedule(event.optimizer, step_calls))
        schedule.count += 1
        if step_calls == 0:
            schedule.early += 1
            schedule.early_site = event.site
            return
        if step_calls == schedule.at and schedule.count > 1 and self._too_many(event, schedule):
            schedule.extra += 1
        schedule.sites.add(event.site)
        schedule.at, schedule.passes = step_calls, self.context.state.newest
        regular = step_calls - schedule.base
        if schedule.count > _SETTLED:
            self._early(schedule, event.optimizer)
        if not schedule.fast and schedule.extra >= 4 and 2 * schedule.extra > regular > 0:
            schedule.fast = True
            self.report(
                self.SCHEDULER_OUTPACES_OPTIMIZER,
                "warning",
                event.site,
                "The scheduler steps more often than the optimizer: the learning rate runs through its schedule too "
                "fast.",
                f"{schedule.count} steps of the scheduler, {step_calls} of {self.context.name(event.optimizer)}",
                "scheduler.step()  # once an update: right after optimizer.step()",
            )

    def _too_many(self, event: Any, schedule: _Schedule) -> bool:
        """Were there micro-batches for this optimizer since the last time, or nothing at all?

        Passes of other losses do not count: where two networks take turns, one schedule may go by the other's clock.
        """
        since = self.context.state.since.get(event.optimizer)
        return (since is not None and bool(since.backwards)) or schedule.passes == self.context.state.newest

    def _early(self, schedule: _Schedule, optimizer: int) -> None:
        """Say that it began too early, unless it is too fast altogether.

        Steps of another line, or several at once, fast-forward a schedule to where training was interrupted.
        """
        if schedule.early != 1 or schedule.told or schedule.extra or schedule.early_site not in schedule.sites:
            return
        schedule.told = True
        self.report(
            self.SCHEDULER_BEFORE_OPTIMIZER,
            "warning",
            schedule.early_site,
            "The scheduler steps before the optimizer does, so the first value of its schedule is skipped.",
            "its first step came before any step of " + self.context.name(optimizer),
            "scheduler.step()  # move it below optimizer.step()",
        )

    def end(self, *, normal: bool) -> None:
        """RuleRunner those that have taken few steps."""
        for schedule in self._schedules.values():
            if self.context.state.step_calls.get(schedule.optimizer):
                self._early(schedule, schedule.optimizer)

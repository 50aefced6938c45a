"""Learning-rate schedulers: too early, too often, or not as often as they are made for."""

from __future__ import annotations

import math
import re
from typing import Any

from ..finding import Code
from ..source.loop_nesting import argument_of, loops_around
from ..source.syntax import source_line
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
            self.report_as(
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
        self.report_as(
            self.SCHEDULER_BEFORE_OPTIMIZER,
            "warning",
            schedule.early_site,
            "The scheduler steps before the optimizer does, so the first value of its schedule is skipped.",
            "its first step came before any step of " + self.context.name(optimizer),
            "scheduler.step()  # move it below optimizer.step()",
        )

    def end(self, *, normal: bool) -> None:
        """Judge those that have taken few steps."""
        for schedule in self._schedules.values():
            if self.context.state.step_calls.get(schedule.optimizer):
                self._early(schedule, schedule.optimizer)


_MOST = 256  # schedulers: a loop may make one for every task
_FEWEST = 12  # updates, to speak of a pace
_LOW, _COLLAPSED, _GONE = 1e-2, 2e-3, 1e-5  # of the greatest learning rate
_ARGUMENTS = {
    "StepLR": ("step_size", 1),
    "MultiStepLR": ("milestones", 1),
    "ExponentialLR": ("gamma", 1),
    "CosineAnnealingLR": ("T_max", 1),
    "LinearLR": ("total_iters", 3),
    "PolynomialLR": ("total_iters", 1),
    "LambdaLR": ("lr_lambda", 1),
    "OneCycleLR": ("total_steps", 2),
    "CyclicLR": ("step_size_up", 3),
}
_COUNTS_BATCHES = re.compile(r"len\(|//|\*|iter|batch|update|total|steps?(?!_?size)", re.IGNORECASE)
_LITERAL = re.compile(r"[\d., \[\]()e-]+")
_POWER = re.compile(r"lambda (\w+): ([\d.]+) \*\* \1")
_FAST = 0.97  # a factor that leaves a twentieth after a hundred steps
_SURELY_BATCHES = re.compile(r"len\(|//|iter|batch", re.IGNORECASE)
_MADE_FOR_TRAINING = ("CosineAnnealingLR", "OneCycleLR", "LinearLR", "PolynomialLR", "LambdaLR", "SequentialLR")


class _Pace:
    """How one scheduler and the updates of its optimizer have followed one another."""

    def __init__(self, event: Any, calls: int) -> None:
        self.plan, self.site, self.optimizer = event.plan, event.site, event.optimizer
        self.first = self.at = calls
        self.count = 0
        self.peak = self.start = event.before
        self.used = self.after = event.before  # learning rates of the newest update, and of the next one
        self.low = 0  # updates since the peak with less than a hundredth of it
        self.falls = 0.0  # decades that the scheduler itself has taken off
        self.down_at = 0  # update from which on it was low

    def step(self, event: Any, calls: int) -> None:
        """Take in a step of the scheduler."""
        self.count, self.site = self.count + 1, event.site
        self._updates(calls, event.before)
        if event.after < event.before:
            self.falls += math.log10(event.before / event.after) if event.after > 0 else 99.0
        elif event.after > event.before > 0:
            self.falls = max(0.0, self.falls - math.log10(event.after / event.before))
        self.after = event.after

    def _updates(self, calls: int, rate: float) -> None:
        new, self.at = calls - self.at, calls
        if rate > self.peak:
            self.peak, self.low, self.falls, self.down_at = rate, 0, 0.0, 0
        if new or self.count == 1:
            self.used = rate
        if rate <= _LOW * self.peak * 1.001:
            self.low += new
            self.down_at = self.down_at or calls - new

    def end(self, calls: int) -> None:
        """Take in the updates after the scheduler's last step."""
        if calls > self.at:
            self._updates(calls, self.after)

    @property
    def each(self) -> float:
        """Updates between two steps of the scheduler."""
        return (self.at - self.first) / max(1, self.count - 1)

    @property
    def updates(self) -> int:
        """Updates in the life of the scheduler."""
        return self.at - self.first + max(1, round(self.each))


class Cadence(Rule):
    """A schedule for epochs that is stepped after every batch, or one for batches that is stepped once an epoch.

    How it is known: from the learning rate that each update used, how often the scheduler and the optimizer stepped,
    and how many steps the schedule plans for; from the source whether `scheduler.step()` stands in a loop in a loop,
    how often the outer one runs, and whether the plan is written in batches (`len(loader)`, `total_steps`).

    How sure: the numbers prove that the learning rate was next to nothing for a large part of the updates, or that the
    schedule hardly moved. That it was not meant so is very likely: a warning.
    """

    SCHEDULER_CADENCE = Code("scheduler-cadence", "07_gradient_accumulation", "The scheduler counts updates")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._paces: dict[Any, _Pace] = {}

    def schedule(self, event: Any) -> None:
        """Note the learning rate, and the steps of the optimizer since the last time."""
        calls = self.context.state.step_calls.get(event.optimizer, 0)
        if not calls or math.isnan(event.before) or math.isnan(event.after):
            return
        if event.plan not in self._paces:
            if len(self._paces) >= _MOST:
                return
            self._paces[event.plan] = _Pace(event, calls)
        self._paces[event.plan].step(event, calls)

    def end(self, *, normal: bool) -> None:
        """Judge each schedule as a whole."""
        for pace in self._paces.values():
            pace.end(self.context.state.step_calls.get(pace.optimizer, 0))
            if pace.updates < _FEWEST or pace.count < 2 or pace.each == 0:
                continue
            if 0.75 <= pace.each <= 1.34 and pace.count >= _FEWEST:
                self._every_batch(pace)
            elif pace.each >= 3:
                self._every_epoch(pace)

    def _every_batch(self, pace: _Pace) -> None:
        nested, plan = _nested(pace), pace.plan
        words = _words(pace)
        last, low = pace.used / pace.peak if pace.peak > 0 else 1.0, pace.low / pace.updates
        fits = 0 < plan.length <= plan.epochs and pace.updates >= 3 * plan.length  # it would just do for the epochs
        pattern = _SURELY_BATCHES if fits else _COUNTS_BATCHES
        batches = bool(pattern.search(words)) and words not in _limits(pace) and not _for_epochs(words, plan.kind)
        if plan.halves:
            rounds = pace.updates / max(1, plan.length)
            sure = nested and not batches and rounds >= 3 and (fits or (not plan.epochs and rounds >= 4))
            if sure:
                self._say_fast(pace, f"went down and up again {rounds / 2:.3g} times")
            return
        if nested and not batches:
            literal = bool(_LITERAL.fullmatch(words))
            collapsed = (
                (fits and last <= 0.2)
                or (literal and low >= 0.25 and last <= _COLLAPSED)
                or (_for_epochs(words, plan.kind) and last <= 0.1)
                or (low >= 0.5 and last <= _COLLAPSED)
            )
        elif nested:
            collapsed = low >= 0.5 and last <= _GONE
        else:  # perhaps all data in one batch: then an update is an epoch
            collapsed = plan.kind != "ReduceLROnPlateau" and pace.count >= 30 and low >= 0.5 and last <= _GONE
        if collapsed and pace.falls >= 0.5:
            when = f", and below a hundredth of it from update {pace.down_at + 1} on" if pace.down_at else ""
            self._say_fast(pace, f"fell from {pace.peak:.3g} to {pace.used:.3g}{when}")

    def _say_fast(self, pace: _Pace, words: str) -> None:
        self.report_as(
            self.SCHEDULER_CADENCE,
            "warning",
            pace.site,
            "The scheduler steps after every batch, but its schedule is made for epochs, so the learning rate changes "
            "far too fast.",
            f"{pace.plan.kind}: {pace.count} steps in {pace.updates} updates of "
            f"{self.context.name(pace.optimizer)}; the learning rate {words}",
            f"{_call(pace)}  # once an epoch: move it out of the loop over batches",
        )

    def _every_epoch(self, pace: _Pace) -> None:
        plan, updates = pace.plan, pace.updates
        if plan.kind not in (*_MADE_FOR_TRAINING, "CyclicLR") or not plan.length or 3 * pace.count > plan.length:
            return
        if 0 < plan.length <= 1.25 * plan.epochs:
            return  # it fits the epochs, of which perhaps not all have run
        words = _words(pace)
        least = 0.98 if _LITERAL.fullmatch(words) else 0.8  # some number may come near by chance
        planned = least * plan.length <= updates <= plan.length / least
        written = "len(" in words
        unfinished = plan.kind == "OneCycleLR" and plan.length >= 3 * plan.epochs > 0
        if planned or written or unfinished:
            self.report_as(
                self.SCHEDULER_CADENCE,
                "warning",
                pace.site,
                "The scheduler steps once an epoch, but its schedule is made for single updates, so it never gets far.",
                f"{plan.kind}: {pace.count} of its {plan.length} steps in {updates} updates of "
                f"{self.context.name(pace.optimizer)}; the learning rate went from {pace.start:.3g} to "
                f"{pace.after:.3g}",
                f"{_call(pace)}  # after every optimizer step: move it into the loop over batches",
            )


def _words(pace: _Pace) -> str:
    """Return how the learner has written the length of the plan."""
    site = pace.plan.made[0] if pace.plan.made else None
    name, position = _ARGUMENTS.get(pace.plan.kind, ("", 0))
    if site is None or not name:
        return ""
    words = argument_of(site, pace.plan.kind, name, position)
    if pace.plan.kind == "OneCycleLR" and not words:
        return argument_of(site, pace.plan.kind, "steps_per_epoch", 4)
    return words


def _for_epochs(words: str, kind: str) -> bool:
    """Is the factor of an exponential schedule a number that only makes sense for epochs?"""
    power = _POWER.fullmatch(words)
    factor = power[2] if power else words if kind == "ExponentialLR" else ""
    return bool(re.fullmatch(r"0?\.\d+", factor)) and float(factor) <= _FAST


def _inner_loops(pace: _Pace) -> list[Any]:
    around = set(loops_around(pace.plan.made))
    return [loop for loop in loops_around(pace.plan.called) if loop not in around]


def _nested(pace: _Pace) -> bool:
    return len(_inner_loops(pace)) >= 2


def _limits(pace: _Pace) -> set[str]:
    return {limit.removesuffix(" + 1") for loop in _inner_loops(pace)[1:] for limit in loop.limits}


def _call(pace: _Pace) -> str:
    """Return the step as the learner has written it."""
    line = source_line(pace.site).partition("#")[0].strip()
    return line if re.fullmatch(r"[\w.\[\]]+\.step\([^()]*\)", line) else "scheduler.step()"

"""A rule for learning-rate schedulers with a wrong pace, a wrong mode, or an optimizer that never steps."""

from __future__ import annotations

import ast
import re
from math import isnan

from ...formatting import number_of
from ..events import Schedule, SchedulePlan, Site
from ..finding import Cause, Code, Severity
from ..source.blocks import loops_around
from ..source.syntax import arguments, calls_of, cause_at, nodes_at, source_line
from .base import Rule

_MAX_SCHEDULERS = 256  # maximum number of tracked schedulers; a loop over tasks may create one for each task
_STEPS_TO_JUDGE_START = 6  # scheduler steps after which it is clear whether the scheduler outpaces the optimizer
_MIN_UPDATES = 12  # least number of updates from which a pace is judged
_LR_LOW, _LR_ZERO, _LR_FALLEN = 0.01001, 1e-4, 0.2  # fractions of the highest learning rate
_STEPS_TO_TENTH = 76  # an ExponentialLR that decays to a tenth in fewer steps was meant to step once per epoch
_MIN_STEPS = 3  # least number of scheduler steps for a finding about another optimizer
_RISES = re.compile(
    r"(?<![a-z])(acc|accuracy|auc|auroc|f1|m?iou|m?ap|dice|bleu|psnr|ssim|rewards?|returns?|recall|precision|r2)(?![a-z])",
    re.IGNORECASE,
)
_LOSS, _FALLS = re.compile("loss", re.IGNORECASE), re.compile("loss|err", re.IGNORECASE)
_LESSON: tuple[str, str, Severity] = ("07_gradient_accumulation", "The scheduler counts updates", "warning")
_MADE_FOR_TRAINING = ("CosineAnnealingLR", "OneCycleLR", "LinearLR", "PolynomialLR", "LambdaLR", "SequentialLR")


class _Pace:
    """The pace of a scheduler: counts of its steps and of its optimizer's updates, and the learning rates."""

    def __init__(self, event: Schedule, calls: int) -> None:
        self.plan, self.optimizer = event.plan, event.optimizer
        self.first = self.last = event
        self.start = self.now = calls  # numbers of updates: at the scheduler's first step after any update, and now
        self.count = self.extra = 0  # scheduler steps after an update, and steps with no update since the one before
        self.before_updates = self.other_stepped = 0  # steps before any update, and steps while another optimizer steps
        self.first_line_repeats = False  # True if the line of the first step ran again after an update
        self.cuts = 0  # number of reductions of the learning rate
        self.passes = 0  # number of the newest backward pass at the scheduler's last step
        self.fast: Site | None = None
        self.peak = self.rate = self.used = event.before  # learning rates: highest, newest, and that of the last update
        self.low = 0  # number of updates with at most a hundredth of the highest learning rate

    def step(self, event: Schedule, calls: int, passes: int) -> None:
        self.start = self.start if self.count else calls
        self.count, self.passes = self.count + 1, passes
        self.first_line_repeats = self.first_line_repeats or event.site == self.first.site
        self.updates_until(calls)
        self.rate = event.after
        if event.after >= self.peak:
            self.peak, self.low = event.after, 0

    def updates_until(self, calls: int) -> None:
        if calls > self.now:
            self.used, self.low = self.rate, self.low + (calls - self.now) * (self.rate <= _LR_LOW * self.peak)
        self.now = calls

    @property
    def each(self) -> float:
        """The mean number of updates between consecutive steps of the scheduler."""
        return (self.now - self.start) / max(1, self.count - 1)

    @property
    def updates(self) -> int:
        return self.now - self.start + max(1, round(self.each))


class Scheduling(Rule):
    """A scheduler that steps before or more often than its optimizer, or at a pace that does not fit its schedule.

    The pace is judged by the learning rates, the steps of the scheduler and of its optimizer, the length of the
    schedule, and the number of epochs in the learner's loop. Schedulers that a library steps are not judged. A pace is
    reported if the learning rate was close to 0 for a large part of the updates, if a schedule as long as the epochs
    ran several times, or if a schedule for all batches hardly moved. The severity is only "warning", because such a
    pace is very likely, but not certainly, a mistake.
    """

    SCHEDULER_BEFORE_OPTIMIZER = Code(
        "scheduler-before-optimizer",
        *_LESSON,
        message="The scheduler steps before the optimizer does, so the first value of its schedule is skipped.",
        fix="Move this line below the optimizer's step(), so that the scheduler steps after it.",
    )
    DROPPED_OPTIMIZER = SCHEDULER_BEFORE_OPTIMIZER.with_(
        message="The scheduler moves the learning rate of an optimizer that never steps: {other} steps the same "
        "parameters, at a rate that stays as it is.",
        fix="Create the scheduler for {other}, after {other} is created.",
    )
    TOO_OFTEN = Code(
        "scheduler-cadence",
        *_LESSON,
        message="The scheduler steps after every batch, but its schedule is as short as one for epochs, so the "
        "learning rate changes far too fast.",
        fix="Move the scheduler's step() out of the loop over batches, so that it runs once an epoch.",
    )
    SCHEDULER_OUTPACES_OPTIMIZER = TOO_OFTEN.with_(
        message="The scheduler steps more often than the optimizer: the learning rate runs through its schedule too "
        "fast.",
        fix="Step the scheduler once an update, right after the optimizer's step().",
    )
    WRONG_WAY = TOO_OFTEN.with_(
        severity="hint",
        message='The scheduler cuts the learning rate while its metric gets better: with mode="{mode}" it expects one '
        "that {expected}.",
        fix='Give ReduceLROnPlateau mode="{right}".',
    )
    TOO_RARELY = TOO_OFTEN.with_(
        message="The scheduler steps once an epoch, but its schedule is made for single updates, so it never gets far.",
        fix="Move the scheduler's step() into the loop over batches, right after the optimizer's step().",
    )

    def _begin(self) -> None:
        self._paces: dict[SchedulePlan, _Pace] = {}

    def schedule(self, event: Schedule) -> None:
        calls = self.state.step_calls.get(event.optimizer, 0)
        if event.plan not in self._paces and len(self._paces) >= _MAX_SCHEDULERS:
            return
        pace = self._paces.setdefault(event.plan, _Pace(event, calls))
        pace.last, pace.cuts = event, pace.cuts + (event.after < event.before)
        pace.other_stepped += event.other >= 0
        if calls == 0:
            pace.before_updates += 1
            return
        # The optimizer is idle if no pass followed the last scheduler step, or if passes to its weights await a step.
        since = self.state.since.get(event.optimizer)
        idle = pace.passes == self.state.newest or (since is not None and bool(since.backwards))
        extra = pace.count > 0 and calls == pace.now and idle
        pace.extra += extra
        pace.step(event, calls, self.state.newest)
        if pace.extra >= 4 and 2 * pace.extra > calls - pace.start > 0:
            pace.fast = pace.fast or event.site
        if pace.fast and extra:
            self._fast(pace, pace.fast)
        if pace.count == _STEPS_TO_JUDGE_START:
            self._early(pace)

    def end(self, *, normal: bool) -> None:
        for pace in self._paces.values():
            if pace.count < _STEPS_TO_JUDGE_START:
                self._early(pace)
            pace.updates_until(self.state.step_calls.get(pace.optimizer, 0))
            self._of_another(pace)
            self._wrong_way(pace)
            if pace.fast:
                self._fast(pace, pace.fast)
            elif pace.updates >= _MIN_UPDATES and pace.count > 1 and _edit(pace.last.site) and not isnan(pace.rate):
                if pace.plan.nested and 0.75 <= pace.each <= 1.34:
                    self._every_batch(pace)
                elif pace.each >= 3:
                    self._every_epoch(pace)

    def _fast(self, pace: _Pace, site: Site) -> None:
        calls = self.state.step_calls[pace.optimizer]
        proof = f"{pace.count} steps of the scheduler, {calls} of {self.context.name(pace.optimizer)}"
        self.report(self.SCHEDULER_OUTPACES_OPTIMIZER, site, proof, _edit(site))

    def _of_another(self, pace: _Pace) -> None:
        """Report a scheduler whose optimizer never steps while another optimizer steps the same parameters."""
        if not pace.count and pace.other_stepped == pace.before_updates >= _MIN_STEPS:
            other, state, idle = pace.last.other, self.state, pace.optimizer
            proof = f"{pace.before_updates} steps of the scheduler; 0 of its own {state.optimizers[idle].kind}, "
            proof += f"{state.step_calls.get(other, 0)} of {self.context.full_name(other)}"
            cause, name = cause_at(pace.plan.created_at), self.context.variable(other)
            self.report(self.DROPPED_OPTIMIZER, pace.last.site, proof, cause, other=name)

    def _wrong_way(self, pace: _Pace) -> None:
        """Report a ReduceLROnPlateau that reduced the learning rate although its metric improved.

        The severity is "hint", because it is guessed from the metric's name in the source whether higher is better.
        """
        first, last, site, rising = pace.first.metric, pace.last.metric, pace.last.site, pace.plan.mode == "min"
        text = _argument(site) if pace.cuts and (first < last if rising else first > last) else ""
        better = _RISES.search(text) and not _FALLS.search(text) if rising else _LOSS.search(text)
        if better and not ("-" in text or "neg" in text.lower()):
            proof = f"{text} went from {first:.3g} to {last:.3g}, and the rate was cut {number_of(pace.cuts, 'time')}"
            right, expected = ("max", "falls") if rising else ("min", "rises")
            cause = cause_at(pace.plan.created_at)
            self.report(self.WRONG_WAY, site, proof, cause, mode=pace.plan.mode, right=right, expected=expected)

    def _early(self, pace: _Pace) -> None:
        """Report a scheduler that stepped once before any update, unless the step may belong to resumed training."""
        if pace.count and pace.before_updates == 1 and pace.first_line_repeats and not pace.extra:
            site, proof = pace.first.site, f"its first step came before any step of {self.context.name(pace.optimizer)}"
            self.report(self.SCHEDULER_BEFORE_OPTIMIZER, site, proof, _edit(site))

    def _every_batch(self, pace: _Pace) -> None:
        plan, epochs, length = pace.plan, pace.plan.epochs, pace.plan.length
        if length and epochs and length % max(1, round(pace.updates / epochs)) == 0:
            return  # the schedule is as long as the updates of a whole number of epochs
        fits = 0 < length <= epochs and pace.updates >= 3 * length  # the schedule fits the epochs, but not the updates
        if plan.halves:
            too_fast = fits and 2 * length >= epochs
            went = f"went down and up again {pace.updates / length / 2:.3g} times" if too_fast else ""
        else:
            steep = plan.kind == "ExponentialLR" and pace.rate <= pace.peak * 0.1 ** (pace.count / _STEPS_TO_TENTH)
            too_fast = pace.used <= pace.peak * (_LR_FALLEN if fits else 0.1 if steep else _LR_ZERO)
            too_fast = too_fast and (fits or steep or 2 * pace.low >= pace.updates)
            went = f"fell from {pace.peak:.3g} to {pace.used:.3g}"
        if too_fast:
            self._say(self.TOO_OFTEN, pace, f"{pace.count} steps", went)

    def _every_epoch(self, pace: _Pace) -> None:
        plan, length, path = pace.plan, pace.plan.length, self.log.path
        sites = pace.last.site, self.state.last[pace.optimizer].step.site
        here, there = (loops_around(path(site))[:1] for site in sites)
        epochs = plan.epochs if plan.nested or here != there else 0  # a loop over updates has no epochs
        if plan.kind not in _MADE_FOR_TRAINING or 3 * pace.count > length or length <= 1.25 * epochs:
            return  # the schedule may be made for epochs, some of which may not have run yet
        if any(0.9 * length <= planned <= 1.1 * length for planned in (pace.updates, epochs * pace.each)):
            went = f"went from {pace.first.before:.3g} to {pace.rate:.3g}"
            self._say(self.TOO_RARELY, pace, f"{pace.count} of its {length} steps", went)

    def _say(self, code: Code, pace: _Pace, steps: str, went: str) -> None:
        updates = f"{pace.updates} updates of {self.context.name(pace.optimizer)}"
        proof = f"{pace.plan.kind}: {steps} in {updates}; the learning rate {went}"
        self.report(code, pace.last.site, proof, _edit(pace.last.site))


def _edit(site: Site) -> Cause | None:
    """Return the location of a line that steps a scheduler, or None if the line only calls a library's trainer."""
    return Cause(*site) if ".step(" in source_line(site) else None


def _argument(site: Site) -> str:
    """Return the source of the first argument of the only ``step()`` call at a line, or "" if there is no such call."""
    calls = [call for call, _ in calls_of(nodes_at(site), "step")]
    values = arguments(calls[0]) if len(calls) == 1 else []
    return ast.unparse(values[0]) if values else ""

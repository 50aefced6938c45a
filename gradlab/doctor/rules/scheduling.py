"""Learning-rate schedulers: too early, too often, or not as often as they are made for."""

from __future__ import annotations

import ast
import math
import re

from ...formatting import number_of
from ..events import Schedule, SchedulePlan, Site
from ..finding import Cause, Code, Severity
from ..source.syntax import called, calls_of, node_place, nodes_at, nodes_in, source_line
from .base import Rule

_MOST = 256  # schedulers: a loop may make one for every task
_SETTLED = 6  # steps after which it is clear whether a scheduler is too fast
_FEWEST = 12  # updates, to speak of a pace
_LR_LOW, _LR_ZERO, _WELL_DOWN = 0.01001, 1e-4, 0.2  # of the highest learning rate
_TENTH_IN = 76  # steps: an exponential that loses nine tenths in fewer is not made for batches
_LEAST = 3  # steps of a scheduler
_RISES = re.compile(
    r"(?<![a-z])(acc|accuracy|auc|auroc|f1|m?iou|m?ap|dice|bleu|psnr|ssim|rewards?|returns?|recall|precision|r2)(?![a-z])",
    re.IGNORECASE,
)
_LOSS, _FALLS = re.compile("loss", re.IGNORECASE), re.compile("loss|err", re.IGNORECASE)
_LESSON: tuple[str, str, Severity] = ("07_gradient_accumulation", "The scheduler counts updates", "warning")
_MADE_FOR_TRAINING = ("CosineAnnealingLR", "OneCycleLR", "LinearLR", "PolynomialLR", "LambdaLR", "SequentialLR")


class _Pace:
    """How one scheduler and the updates of its optimizer have followed one another."""

    def __init__(self, event: Schedule, calls: int) -> None:
        self.plan: SchedulePlan = event.plan
        self.site, self.optimizer, self.start = event.site, event.optimizer, event.before
        self.first = self.at = calls
        self.count = self.extra = 0  # steps of the scheduler, and those of them without an update
        self.early: list[Site] = []  # lines of its first steps before the optimizer's first
        self.instead = 0  # of its steps, those while another optimizer stepped the same parameters
        self.metrics = event.metric, event.metric  # what it was given first and last
        self.cuts = 0  # of the rate, after the first
        self.sites: set[Site] = set()  # lines of the others
        self.passes = 0  # number of the newest backward pass at its last step
        self.fast, self.fast_at = False, event.site
        self.tries, self.other = 0, -1  # its steps before the optimizer's first, and who stepped instead
        self.share = self.used = 1.0  # of the highest rate, by the scheduler's doing: for the next update, the newest
        self.peak = self.rate = self.after = event.before
        self.low = 0  # updates with less than a hundredth of the highest rate

    def step(self, event: Schedule, calls: int, passes: int) -> None:
        self.first = self.first if self.count else calls
        self.count, self.site, self.passes = self.count + 1, event.site, passes
        self.sites.add(event.site)
        self.updates_until(calls)
        self.after = event.after
        self.share = self.share * event.after / event.before if event.before > 0 else float(event.after > 0)
        if self.share >= 1:
            self.share, self.peak, self.low = 1.0, event.after, 0

    def updates_until(self, calls: int) -> None:
        new, self.at = calls - self.at, calls
        if new:
            self.used, self.rate = self.share, self.after
            self.low += new if self.share <= _LR_LOW else 0

    @property
    def each(self) -> float:
        """Updates between two steps of the scheduler."""
        return (self.at - self.first) / max(1, self.count - 1)

    @property
    def updates(self) -> int:
        return self.at - self.first + max(1, round(self.each))


class Scheduling(Rule):
    """A scheduler that steps before the optimizer, more often than it, or at another pace than it is made for.

    The pace is known from what the scheduler has made of the learning rate, how often it and the optimizer stepped, how
    many steps it plans for, and how often the learner's loop around the loop over batches runs. Schedules that a
    library steps are left to it. The numbers prove that the rate was next to nothing for a large part of the updates,
    that a schedule as long as the epochs ran through several times, or that one for all batches hardly moved; that it
    was not meant so is very likely: a warning.
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
        fix="Make the scheduler from {other}, after that is made.",
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
        """Compare with the steps of its optimizer so far."""
        calls, passes = self.context.state.step_calls.get(event.optimizer, 0), self.context.state.newest
        if event.plan not in self._paces and len(self._paces) >= _MOST:
            return
        pace = self._paces.setdefault(event.plan, _Pace(event, calls))
        if event.after < event.before:
            pace.cuts += 1
        pace.metrics = pace.metrics[0], event.metric
        pace.instead += event.other >= 0
        if calls == 0:
            pace.early += [event.site] if len(pace.early) < 2 else []
            pace.tries, pace.other, pace.site = pace.tries + 1, event.other, event.site
            return
        # micro-batches of this optimizer, or nothing at all: passes of other losses, where two networks take turns, no
        since = self.context.state.since.get(event.optimizer)
        idle = pace.passes == passes or (since is not None and bool(since.backwards))
        pace.extra += pace.count > 0 and calls == pace.at and idle
        pace.step(event, calls, passes)
        if not pace.fast and pace.extra >= 4 and 2 * pace.extra > calls - pace.first > 0:
            pace.fast, pace.fast_at = True, event.site
        if pace.count == _SETTLED:
            self._early(pace)

    def end(self, *, normal: bool) -> None:
        """Judge each schedule as a whole."""
        for pace in self._paces.values():
            if pace.count < _SETTLED:
                self._early(pace)
            calls = self.context.state.step_calls.get(pace.optimizer, 0)
            pace.updates_until(calls)
            self._of_another(pace)
            self._wrong_way(pace)
            if pace.fast:
                seen = f"{pace.count} steps of the scheduler, {calls} of {self.context.name(pace.optimizer)}"
                self.report(self.SCHEDULER_OUTPACES_OPTIMIZER, pace.fast_at, seen, _own_step(pace.fast_at))
                continue
            if pace.updates < _FEWEST or pace.count < 2 or math.isnan(pace.share) or _own_step(pace.site) is None:
                continue
            if pace.plan.nested and 0.75 <= pace.each <= 1.34:
                self._every_batch(pace)
            elif pace.each >= 3:
                self._every_epoch(pace)

    def _of_another(self, pace: _Pace) -> None:
        """Say that its optimizer never steps, and which one does instead, all the time."""
        if not pace.count and pace.instead == pace.tries >= _LEAST:
            scheduled, stepped = self.context.state.optimizers[pace.optimizer], self.context.full_name(pace.other)
            updates = self.context.state.step_calls.get(pace.other, 0)
            seen = f"{pace.tries} steps of the scheduler; 0 of its own {scheduled.kind}, {updates} of {stepped}"
            place = Cause(*pace.plan.made) if pace.plan.made[1] else None
            self.report(self.DROPPED_OPTIMIZER, pace.site, seen, place, other=self.context.variable(pace.other))

    def _wrong_way(self, pace: _Pace) -> None:
        """Say that a plateau has cut the rate although its metric got better, as the metric's name in the source says.

        That is a guess from a name: a hint.
        """
        (first, last), rising = pace.metrics, pace.plan.mode == "min"
        words = _argument(pace.site) if pace.cuts and (first < last if rising else first > last) else ""
        better = _RISES.search(words) and not _FALLS.search(words) if rising else _LOSS.search(words)
        if better and not ("-" in words or "neg" in words.lower()):
            seen = f"{words} went from {first:.3g} to {last:.3g}, and the rate was cut {number_of(pace.cuts, 'time')}"
            right, expected = ("max", "falls") if rising else ("min", "rises")
            calls = [node for _, node in nodes_in([pace.site[0]]) if called(node) == "ReduceLROnPlateau"]
            place = node_place(pace.site[0], calls[0]) if len(calls) == 1 else None
            self.report(self.WRONG_WAY, pace.site, seen, place, mode=pace.plan.mode, right=right, expected=expected)

    def _early(self, pace: _Pace) -> None:
        """Say that it began too early; steps of another line, or several, go to where training was interrupted."""
        if pace.count and len(pace.early) == 1 and pace.early[0] in pace.sites and not pace.extra:
            seen = "its first step came before any step of " + self.context.name(pace.optimizer)
            self.report(self.SCHEDULER_BEFORE_OPTIMIZER, pace.early[0], seen, _own_step(pace.early[0]))

    def _every_batch(self, pace: _Pace) -> None:
        epochs, length = pace.plan.epochs, pace.plan.length
        if length and epochs and length % max(1, round(pace.updates / epochs)) == 0:
            return  # whole epochs, counted in batches
        fits = 0 < length <= epochs and pace.updates >= 3 * length  # it would just do for the epochs
        if pace.plan.halves:
            too_fast = fits and 2 * length >= epochs
            went = f"went down and up again {pace.updates / length / 2:.3g} times" if too_fast else ""
        else:
            steep = pace.plan.kind == "ExponentialLR" and pace.share <= 0.1 ** (pace.count / _TENTH_IN)
            too_fast = pace.used <= (_WELL_DOWN if fits else 0.1 if steep else _LR_ZERO)
            too_fast = too_fast and (fits or steep or 2 * pace.low >= pace.updates)
            went = f"fell from {pace.peak:.3g} to {pace.rate:.3g}"
        if too_fast:
            self._say(self.TOO_OFTEN, pace, f"{pace.count} steps", went)

    def _every_epoch(self, pace: _Pace) -> None:
        plan, length = pace.plan, pace.plan.length
        if plan.kind not in _MADE_FOR_TRAINING or 3 * pace.count > length or length <= 1.25 * plan.epochs:
            return  # it fits the epochs, of which perhaps not all have run
        if any(0.9 * length <= planned <= 1.1 * length for planned in (pace.updates, plan.epochs * pace.each)):
            went = f"went from {pace.start:.3g} to {pace.after:.3g}"
            self._say(self.TOO_RARELY, pace, f"{pace.count} of its {length} steps", went)

    def _say(self, code: Code, pace: _Pace, steps: str, went: str) -> None:
        updates = f"{pace.updates} updates of {self.context.name(pace.optimizer)}"
        seen = f"{pace.plan.kind}: {steps} in {updates}; the learning rate {went}"
        self.report(code, pace.site, seen, _own_step(pace.site))


def _own_step(site: Site) -> Cause | None:
    """Return the line of a scheduler's step if it is the learner's own, not one that calls a library's trainer."""
    return Cause(*site) if ".step(" in source_line(site) else None


def _argument(site: Site) -> str:
    """Return the words of what a scheduler's step is given; "" if they can't be read."""
    calls = [call for call, _ in calls_of(nodes_at(site), "step")]
    given = [*calls[0].args, *(one.value for one in calls[0].keywords)] if len(calls) == 1 else []
    return ast.unparse(given[0]) if given else ""

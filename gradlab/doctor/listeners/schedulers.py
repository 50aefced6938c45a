"""Learning-rate schedulers: their steps, for how many they are made, and in which of the learner's loops they step."""

from __future__ import annotations

import ast
import inspect
import math
import re
import sys
from types import FrameType
from typing import Any

from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from ... import _torch
from ..._process import Patches
from ..events import NO_SITE, Schedule, SchedulePlan, Site
from ..frames import call_chain, call_lines, call_site, value_in
from ..source.blocks import loops_around
from .event_log import EventLog, Listener, never_raises

_LENGTHS = ("total_steps", "T_max", "total_iters", "step_size")
_NAMED_AS_LENGTH = re.compile(r"total|max|training|num_(steps|iter|updates)|t_max", re.IGNORECASE)


def _planned_length(scheduler: Any) -> int:
    """Return how many steps a scheduler plans for, or waits between two changes; 0 if that is not known."""
    parts, milestones = getattr(scheduler, "_schedulers", None), getattr(scheduler, "_milestones", None)
    if parts and milestones:  # one after the other
        last = _planned_length(parts[-1])
        return milestones[-1] + last if last else 0
    if (milestones := getattr(scheduler, "milestones", None)) is not None:
        return int(max(milestones, default=0))
    for function in getattr(scheduler, "lr_lambdas", ()):
        lengths = [value for name, value in _knows(function).items() if _NAMED_AS_LENGTH.search(name)]
        return max((value for value in lengths if type(value) is int), default=0)
    lengths = [getattr(scheduler, name, None) for name in _LENGTHS]
    return next((int(length) for length in lengths if isinstance(length, (int, float)) and length < math.inf), 0)


def _knows(function: Any) -> dict[str, Any]:
    named = dict(getattr(function, "keywords", {}))  # of a partial, as in transformers' schedules
    if inspect.isfunction(function):
        used = inspect.getclosurevars(function)
        named |= {**used.globals, **used.nonlocals}
    return named


def _loops(made: tuple[Site, ...], chain: list[FrameType]) -> tuple[bool, int]:
    """Return if a step is in a loop in a loop, both run since a line was left, and how often the outer one runs.

    That is 0 where it takes more than a look-up.
    """
    around = loops_around(made)
    lines = tuple((frame.f_code.co_filename, frame.f_lineno) for frame in chain)
    loops = [loop for loop in loops_around(lines) if loop not in around]
    limits = [ast.parse(limit, mode="eval").body for limit in (loops[1].limits if len(loops) >= 2 else ())]
    values = [value_in(frame, limit) for limit in limits for frame in chain]
    return len(loops) >= 2, max((value for value in values if type(value) is int), default=0)


class SchedulerListener(Listener):
    """Listens to learning-rate schedulers."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self._made_by: WeakIdKeyDictionary = WeakIdKeyDictionary()  # scheduler -> the lines that made it
        self._plans: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def patch(self, patches: Patches) -> None:
        """Replace the steps of all kinds of schedulers, and what makes them.

        LRScheduler.step itself finds out whose line to blame in a warning: no frame may come between.
        """
        update_lr, _ = _torch.locate("update_lr")
        for kind in _with_subclasses(LRScheduler, ReduceLROnPlateau):
            patches.replace(kind, "__init__", self.outermost(self._made))  # its first step is not the learner's
            patches.replace(
                kind, "_update_lr" if kind is update_lr else "step", self.outermost(self._stepped, self._rate)
            )

    @never_raises
    def _made(self, scheduler: Any, *given: Any, **named: Any) -> None:
        self._made_by[scheduler] = call_lines(sys._getframe(3))

    @never_raises
    def _rate(self, scheduler: Any) -> float:
        """Return the greatest learning rate of a scheduler's optimizer; NaN if that would mean to wait for a GPU."""
        groups = getattr(getattr(scheduler, "optimizer", None), "param_groups", [])
        rates = [group.get("lr", math.nan) for group in groups]
        waits = any(isinstance(lr, Tensor) and lr.device.type != "cpu" for lr in rates)
        return math.nan if waits else max(map(float, rates), default=math.nan)

    @never_raises
    def _stepped(self, scheduler: Any, before: float, metrics: Any = None, *rest: Any, **named: Any) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        if isinstance(optimizer, Optimizer):
            if (plan := self._plans.get(scheduler)) is None:
                plan = self._plans[scheduler] = self._plan(scheduler, call_chain(sys._getframe(3)))
            one = self.log.optimizer(optimizer)
            event = Schedule(call_site(), one.number, plan, before, self._rate(scheduler))
            event.other = self.log.optimizers.stepping_instead(one) if one.written < 0 else -1
            if plan.mode and metrics is not None:
                event.metric = float(metrics)  # as the scheduler itself does
            self.log.emit(event)

    def _plan(self, scheduler: Any, chain: list[FrameType]) -> SchedulePlan:
        """Return the plan of a scheduler that has stepped; the frames have led there."""
        made, last = self._made_by.get(scheduler, ()), getattr(scheduler, "_schedulers", [scheduler])[-1]
        plan = SchedulePlan(type(scheduler).__name__, _planned_length(scheduler), hasattr(last, "T_max"))
        plan.nested, plan.epochs = _loops(made, chain)
        plan.mode = scheduler.mode if isinstance(scheduler, ReduceLROnPlateau) else ""
        plan.made = made[0] if made else NO_SITE
        return plan


def _with_subclasses(*kinds: type) -> set[type]:
    return {*kinds}.union(*(_with_subclasses(*kind.__subclasses__()) for kind in kinds))

"""Learning-rate schedulers: their steps, for how many they are made, and in which of the learner's loops they step."""

from __future__ import annotations

import ast
import inspect
import math
import re
import sys
from itertools import islice, takewhile
from types import FrameType
from typing import Any

from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from ... import _torch
from ..._frames import Owner, code_owner, frames
from ..._process import Original, Patches
from ..events import NO_SITE, Schedule, SchedulePlan
from ..frames import FrameValues, call_chain, call_lines, call_site
from ..source.blocks import loops_around
from .event_log import EventLog, Listener, never_raises

_LENGTHS = ("total_steps", "T_max", "total_iters", "step_size")
_NAMED_AS_LENGTH = re.compile(r"total|max|training|num_(steps|iter|updates)|t_max", re.IGNORECASE)


def greatest_lr(scheduler: Any) -> float:
    """Return the greatest learning rate of a scheduler's optimizer; NaN if that would mean to wait for a GPU."""
    groups = getattr(getattr(scheduler, "optimizer", None), "param_groups", [])
    rates = [group.get("lr", math.nan) for group in groups]
    if len(rates) == 1 and type(rates[0]) is float:  # nearly always
        return rates[0]
    if not rates or any(isinstance(lr, Tensor) and lr.device.type != "cpu" for lr in rates):
        return math.nan
    return max(float(lr) for lr in rates)


def planned_length(scheduler: Any) -> int:
    """Return how many steps a scheduler plans for, or waits between two changes; 0 if that is not known."""
    parts, milestones = getattr(scheduler, "_schedulers", None), getattr(scheduler, "_milestones", None)
    if parts and milestones:  # one after the other
        last = planned_length(parts[-1])
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


def _value(words: str, frame: FrameType) -> int:
    """Return what a loop counts to; 0 where that takes more than a look-up."""
    value = FrameValues(frame).of(ast.parse(words, mode="eval").body)
    return value if type(value) is int else 0


class SchedulerListener(Listener):
    """Listens to learning-rate schedulers."""

    _inside = False

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self._made_by: WeakIdKeyDictionary = WeakIdKeyDictionary()  # scheduler -> the lines that made it
        self._plans: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def patch(self, patches: Patches) -> None:
        """Replace the steps of all kinds of schedulers.

        LRScheduler.step itself finds out whose line to blame in a warning: no frame may come between.
        """
        update_lr, _ = _torch.place("update_lr")
        for kind in _with_subclasses(LRScheduler, ReduceLROnPlateau):
            patches.replace(kind, "_update_lr" if kind is update_lr else "step", self._step)

    def _step(self, original: Original) -> Any:
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if self._inside or not self.log.is_watched_thread():
                return original.call(scheduler, *args, **kwargs)
            if _initial(sys._getframe(1)):
                result = original.call(scheduler, *args, **kwargs)
                self._made(scheduler)
                return result
            before = self._rate(scheduler)
            self._inside = True
            try:
                return original.call(scheduler, *args, **kwargs)
            finally:
                self._inside = False
                self._stepped(scheduler, before, args[0] if args else kwargs.get("metrics"))

        return step

    @never_raises
    def _made(self, scheduler: Any) -> None:
        self._made_by[scheduler] = call_lines(sys._getframe(3))

    @never_raises
    def _rate(self, scheduler: Any) -> float:
        return greatest_lr(scheduler)

    @never_raises
    def _stepped(self, scheduler: Any, before: float, given: Any) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        if isinstance(optimizer, Optimizer):
            plan = self._plan(scheduler, sys._getframe(3))
            one = self.log.optimizer(optimizer)
            event = Schedule(call_site(), one.number, plan, before, greatest_lr(scheduler))
            event.other = self.log.optimizers.stepping_instead(one) if one.written < 0 else -1
            if plan.mode and given is not None:
                event.metric = float(given)  # as the scheduler itself does
            self.log.emit(event)

    def _plan(self, scheduler: Any, frame: FrameType | None) -> SchedulePlan:
        """Return the plan of a scheduler that has stepped; the frame is that of its first caller."""
        plan: SchedulePlan | None = self._plans.get(scheduler)
        if plan is None:
            last = getattr(scheduler, "_schedulers", [scheduler])[-1]
            plan = SchedulePlan(type(scheduler).__name__, planned_length(scheduler), hasattr(last, "T_max"))
            plan.nested, plan.epochs = self._loops(scheduler, call_chain(frame))
            plan.mode = scheduler.mode if isinstance(scheduler, ReduceLROnPlateau) else ""
            plan.made = next(iter(self._made_by.get(scheduler, ())), NO_SITE)
            self._plans[scheduler] = plan
        return plan

    def _loops(self, scheduler: Any, frames: list[FrameType]) -> tuple[bool, int]:
        """Return if it steps in a loop in a loop, both run in its life, and how often the outer one runs; 0: unknown.

        One that is made of others takes no step of its own when it is made; they have.
        """
        made = [self._made_by.get(one) for one in (scheduler, *getattr(scheduler, "_schedulers", ()))]
        around = loops_around(next((lines for lines in made if lines is not None), ()))
        lines = tuple((frame.f_code.co_filename, frame.f_lineno) for frame in frames)
        loops = [loop for loop in loops_around(lines) if loop not in around]
        limits = loops[1].limits if len(loops) >= 2 else ()
        return len(loops) >= 2, max((_value(limit, frame) for limit in limits for frame in frames), default=0)


def _initial(frame: FrameType | None) -> bool:
    """Return whether a scheduler's step is the one that it takes when it is made."""
    near = takewhile(lambda one: code_owner(one.f_code.co_filename) is Owner.OURS, islice(frames(frame), 4))
    return any(one.f_code.co_name in ("_initial_step", "__init__") for one in near)


def _with_subclasses(*kinds: type) -> set[type]:
    return {*kinds}.union(*(_with_subclasses(*kind.__subclasses__()) for kind in kinds))

"""The listener for learning-rate schedulers: their steps, their planned lengths, and the loops that they step in."""

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
    """Return the number of steps in a scheduler's schedule (for StepLR, its ``step_size``), or 0 if it is unknown."""
    parts, milestones = getattr(scheduler, "_schedulers", None), getattr(scheduler, "_milestones", None)
    if parts and milestones:  # a SequentialLR
        last = _planned_length(parts[-1])
        return milestones[-1] + last if last else 0
    if (milestones := getattr(scheduler, "milestones", None)) is not None:
        return int(max(milestones, default=0))
    for function in getattr(scheduler, "lr_lambdas", ()):
        lengths = [value for name, value in _bound_values(function).items() if _NAMED_AS_LENGTH.search(name)]
        return max((value for value in lengths if type(value) is int), default=0)
    lengths = [getattr(scheduler, name, None) for name in _LENGTHS]
    return next((int(length) for length in lengths if isinstance(length, (int, float)) and length < math.inf), 0)


def _bound_values(function: Any) -> dict[str, Any]:
    named = dict(getattr(function, "keywords", {}))  # arguments of a functools.partial, as in transformers' schedules
    if inspect.isfunction(function):
        closure = inspect.getclosurevars(function)
        named |= {**closure.globals, **closure.nonlocals}
    return named


def _loops(creation: tuple[Site, ...], chain: list[FrameType]) -> tuple[bool, int]:
    """Return whether two loops contain a scheduler's step, not its creation, and the outer loop's iterations, or 0."""
    around = loops_around(creation)
    lines = tuple((frame.f_code.co_filename, frame.f_lineno) for frame in chain)
    loops = [loop for loop in loops_around(lines) if loop not in around]
    limits = [ast.parse(limit, mode="eval").body for outer in loops[:2][-1:] for limit in outer.limits]
    values = [value_in(frame, limit) for limit in limits for frame in chain]
    return len(loops) >= 2, max((value for value in values if type(value) is int), default=0)


class SchedulerListener(Listener):
    """Emits events for the steps of learning-rate schedulers."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self._creation_lines: WeakIdKeyDictionary = WeakIdKeyDictionary()  # lines that led to each scheduler's creation
        self._plans: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def patch(self, patches: Patches) -> None:
        """Replace ``__init__`` of all schedulers, and their ``step`` or, for LRScheduler itself, ``_update_lr``.

        ``LRScheduler.step`` finds the line for its warning by stack depth, so a wrapper would change that line.
        """
        update_lr, _ = _torch.locate("update_lr")
        for kind in _with_subclasses(LRScheduler, ReduceLROnPlateau):
            # the step that the constructor itself makes is not recorded
            patches.replace(kind, "__init__", self.outermost(self._note_creation))
            method = "_update_lr" if kind is update_lr else "step"
            patches.replace(kind, method, self.outermost(self._stepped, self._rate))

    @never_raises
    def _note_creation(self, scheduler: Any, *args: Any, **kwargs: Any) -> None:
        self._creation_lines[scheduler] = call_lines(sys._getframe(3))

    @never_raises
    def _rate(self, scheduler: Any) -> float:
        """Return the largest learning rate of a scheduler's optimizer, or NaN if it has none or if any is on a GPU."""
        groups = getattr(getattr(scheduler, "optimizer", None), "param_groups", [])
        rates = [group.get("lr", math.nan) for group in groups]
        waits = any(isinstance(lr, Tensor) and lr.device.type != "cpu" for lr in rates)
        return math.nan if waits else max(map(float, rates), default=math.nan)

    @never_raises
    def _stepped(self, scheduler: Any, before: float, metrics: Any = None, *rest: Any, **kwargs: Any) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        if isinstance(optimizer, Optimizer):
            if (plan := self._plans.get(scheduler)) is None:
                plan = self._plans[scheduler] = self._plan(scheduler, call_chain(sys._getframe(3)))
            watched = self.log.optimizer(optimizer)
            event = Schedule(call_site(), watched.number, plan, before, self._rate(scheduler))
            event.other = self.log.optimizers.stepping_instead(watched) if watched.written < 0 else -1
            if plan.mode and metrics is not None:
                event.metric = float(metrics)  # ReduceLROnPlateau converts its metric in the same way
            self.log.emit(event)

    def _plan(self, scheduler: Any, chain: list[FrameType]) -> SchedulePlan:
        creation, last = self._creation_lines.get(scheduler, ()), getattr(scheduler, "_schedulers", [scheduler])[-1]
        length, halves = _planned_length(scheduler), hasattr(last, "T_max")
        mode = scheduler.mode if isinstance(scheduler, ReduceLROnPlateau) else ""
        site = creation[0] if creation else NO_SITE
        return SchedulePlan(type(scheduler).__name__, length, halves, *_loops(creation, chain), mode, site)


def _with_subclasses(*kinds: type) -> set[type]:
    return {*kinds}.union(*(_with_subclasses(*kind.__subclasses__()) for kind in kinds))

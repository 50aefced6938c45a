"""Scalers and schedulers."""

from __future__ import annotations

import sys
import weakref
from itertools import islice, takewhile
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.optim.optimizer import Optimizer

from ... import _torch
from ..._frames import Owner, code_owner, frames
from ..events import ScalerStep, ScalerUpdate, Schedule, Unscale
from ..frames import call_site
from ..graphs.autograd_graph import mark_scaled
from ..state.schedule_plans import SchedulePlans, greatest_lr
from .event_log import EventLog
from .monkeypatch import Below, Listener, MonkeyPatches, never_raises


class ScalerListener(Listener):
    """Listens to ``GradScaler``."""

    def patch(self, patches: MonkeyPatches) -> None:
        """Replace the scaler's methods."""
        scaler = torch.amp.GradScaler
        patches.replace(scaler, "scale", self.after(self._scaled))
        patches.replace(scaler, "unscale_", self._unscale)
        patches.replace(scaler, "step", self._step)
        patches.replace(scaler, "update", self.after(self._updated))

    @never_raises
    def _scaled(self, scaler: Any, result: Any) -> None:
        if not scaler.is_enabled():
            return
        self.log.scaling.scaler = weakref.ref(scaler)
        # A generator is left alone: what is taken out of it here would be missing in the learner's loop.
        for one in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(one, Tensor):
                mark_scaled(one)

    def _unscale(self, below: Below) -> Any:
        def unscale_(scaler: Any, optimizer: Optimizer) -> None:
            if scaler.is_enabled() and self.log.is_watched_thread():
                self._before_unscale(optimizer)
                below.call(scaler, optimizer)
                self._after_unscale(optimizer)
            else:
                below.call(scaler, optimizer)

        return unscale_

    @never_raises
    def _before_unscale(self, optimizer: Optimizer) -> None:
        self.log.detect_changes(self.log.optimizer(optimizer).params)

    @never_raises
    def _after_unscale(self, optimizer: Optimizer) -> None:
        params = self.log.optimizer(optimizer).params
        self.log.index.changes(params)
        self.log.emit(Unscale(params))

    def _step(self, below: Below) -> Any:
        log = self.log

        def step(scaler: Any, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
            if not scaler.is_enabled() or not log.is_watched_thread():
                return below.call(scaler, optimizer, *args, **kwargs)
            before = log.steps
            log.scaling.inside += 1
            try:
                self._before_unscale(optimizer)
                result = below.call(scaler, optimizer, *args, **kwargs)
            finally:
                log.scaling.inside -= 1
            self._stepped(scaler, optimizer, taken=log.steps > before)
            return result

        return step

    @never_raises
    def _stepped(self, scaler: Any, optimizer: Optimizer, *, taken: bool) -> None:
        log = self.log
        one = log.optimizer(optimizer)
        log.scaling.step = call_site()
        log.emit(ScalerStep(log.scaling.step, one.number, one.params, taken, id(scaler)))

    @never_raises
    def _updated(self, scaler: Any, result: None) -> None:
        self.log.emit(ScalerUpdate(id(scaler)))


class SchedulerListener(Listener):
    """Listens to learning-rate schedulers."""

    _inside = False

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self._plans = SchedulePlans()

    def patch(self, patches: MonkeyPatches) -> None:
        """Replace the steps of all kinds of schedulers.

        LRScheduler.step itself finds out whose line to blame in a warning: no frame may come between.
        """
        update_lr, _ = _torch.place("update_lr")
        for kind in _with_subclasses(LRScheduler, ReduceLROnPlateau):
            patches.replace(kind, "_update_lr" if kind is update_lr else "step", self._step)

    def _step(self, below: Below) -> Any:
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if self._inside or not self.log.is_watched_thread():
                return below.call(scheduler, *args, **kwargs)
            if _initial(sys._getframe(1)):
                result = below.call(scheduler, *args, **kwargs)
                self._made(scheduler)
                return result
            before = self._rate(scheduler)
            self._inside = True
            try:
                return below.call(scheduler, *args, **kwargs)
            finally:
                self._inside = False
                self._stepped(scheduler, before)

        return step

    @never_raises
    def _made(self, scheduler: Any) -> None:
        self._plans.made(scheduler, sys._getframe(3))

    @never_raises
    def _rate(self, scheduler: Any) -> float:
        return greatest_lr(scheduler)

    @never_raises
    def _stepped(self, scheduler: Any, before: float) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        if isinstance(optimizer, Optimizer):
            plan = self._plans.of(scheduler, sys._getframe(3))
            number = self.log.optimizer(optimizer).number
            self.log.emit(Schedule(call_site(), number, plan, before, greatest_lr(scheduler)))


def _initial(frame: FrameType | None) -> bool:
    """Is a scheduler's step the one that it takes when it is made?"""
    near = takewhile(lambda one: code_owner(one.f_code.co_filename) is Owner.OURS, islice(frames(frame), 4))
    return any(one.f_code.co_name in ("_initial_step", "__init__") for one in near)


def _with_subclasses(*kinds: type) -> set[type]:
    return {*kinds}.union(*(_with_subclasses(*kind.__subclasses__()) for kind in kinds))

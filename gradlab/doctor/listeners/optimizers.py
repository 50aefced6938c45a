"""Optimizers: how they are made, step, and clear."""

from __future__ import annotations

import sys
from typing import Any

from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ..callsite import call_lines, call_site
from ..event_log import EventLog
from ..events import Added, Clear, GradEdited, Step
from ..monkeypatch import Below, MonkeyPatches, never_raises
from ..names import wrapped_optimizer
from ..state.optimizer_lives import OptimizerLives
from .base import Listener


class OptimizerListener(Listener):
    """Listens to optimizers."""

    def __init__(self, log: EventLog) -> None:
        """Start before the first step."""
        super().__init__(log)
        self._lives = OptimizerLives()
        self._named: dict[int, int] = {}  # optimizer -> its parameters when names were looked for
        self._written: dict[int, int] = {}  # optimizer -> how often its weights had been written to after its last step

    def patch(self, patches: MonkeyPatches) -> None:
        """Replace methods of all optimizers."""
        patches.replace(Optimizer, "__init__", self._init)
        patches.replace(Optimizer, "zero_grad", self._zero_grad)

    def hooks(self) -> list[Any]:
        """Hear of steps."""
        return [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]

    def _init(self, below: Below) -> Any:
        def init(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
            below.call(optimizer, *args, **kwargs)
            self._made(optimizer)

        return init

    @never_raises
    def _made(self, optimizer: Optimizer) -> None:
        if self.log.may_train_here():
            lines = call_lines(sys._getframe(2))
            index = self.log.optimizer(optimizer, lines)
            if lines:
                self._lives.made(index, optimizer, lines[0])

    @never_raises
    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        log = self.log
        if not log.is_watched_thread():
            log.steps_elsewhere()
            return
        index = log.optimizer(optimizer)
        params = log.params_of(optimizer)
        if log.current is not None:
            present, _, changed = log.index.changes(params)
            log.with_new_grad |= changed
            log.emit(Added(log.current, changed))
        else:
            present = log.detect_changes(params)
        if log.stepping and index in (unfinished := [step.optimizer for step in log.stepping]):
            del log.stepping[unfinished.index(index) :]  # its last step has ended in an exception
        step = Step(call_site(), index, params, present)
        if present and not present & log.with_new_grad:
            step.norms = log.index.norms(present)
        step.frozen = log.index.frozen(params) if not present else 0
        step.scaler, step.backward = log.in_scaler > 0, log.current is not None
        step.moved = self._written.get(index, written := _written(optimizer)) != written
        step.resumes = self._lives.resumes(index, optimizer, written)
        if step.resumes:
            step.lines = call_lines(sys._getframe(2))
        if self._named.get(index) != params:
            self._named[index] = params
            log.find_names(sys._getframe(2), optimizer=index, params=params)
        log.note_callers(step.site)
        log.stepping.append(step)
        log.steps += 1
        log.note_update()
        log.emit(step)

    @never_raises
    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        log = self.log
        if log.is_watched_thread() and log.stepping:
            step = log.stepping[-1]
            if (args[1] if len(args) > 1 else None) is not None or kwargs.get("closure") is not None:
                self._after_closure(step)
            log.stepping.pop()
            self._written[step.optimizer] = written = _written(optimizer)
            self._lives.stepped(step.optimizer, optimizer, written)
            log.weight_marks.settle(step.params)
            log.flush_if_due()

    def _after_closure(self, step: Step) -> None:
        """Note whether a closure that ran no backward pass has cleared or filled gradients by itself."""
        self.log.detect_changes(step.params)
        for event in reversed(self.log.events):
            if event is step:
                break
            step.closure = step.closure or isinstance(event, (Clear, GradEdited))

    def _zero_grad(self, below: Below) -> Any:
        def zero_grad(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
            below.call(optimizer, *args, **kwargs)
            if self.log.is_watched_thread():
                self._cleared(optimizer)

        return zero_grad

    @never_raises
    def _cleared(self, optimizer: Optimizer) -> None:
        optimizer = wrapped_optimizer(optimizer)
        self.log.optimizer(optimizer)
        self.log.cleared(call_site(3), self.log.params_of(optimizer))


def _written(optimizer: Optimizer) -> int:
    """Return how often an optimizer's weights have been written to; the first of a group stands for it."""
    return sum([group["params"][0]._version for group in optimizer.param_groups if group["params"]])

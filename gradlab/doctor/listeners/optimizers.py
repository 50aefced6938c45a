"""Optimizers: how they are made, step, and clear."""

from __future__ import annotations

import sys
from itertools import takewhile
from typing import Any

from torch.optim.optimizer import Optimizer

from ... import _torch
from ..._process import Original, Patches, ThreadHook
from ..events import Added, Clear, GradEdited, Step
from ..frames import call_site
from ..state.names import wrapped_optimizer
from .listener import Listener, never_raises


class OptimizerListener(Listener):
    """Listens to optimizers."""

    def patch(self, patches: Patches) -> None:
        """Replace methods of all optimizers."""
        patches.replace(Optimizer, "__init__", self.after(self._made, anywhere=True))
        patches.replace(Optimizer, "zero_grad", self._zero_grad)

    def hooks(self) -> list[Any]:
        """Hear of steps."""
        return [
            ThreadHook(self._before_step, "optimizer_pre_hooks", every_thread=True),
            ThreadHook(self._after_step, "optimizer_post_hooks", every_thread=True),
        ]

    @never_raises
    def _made(self, optimizer: Optimizer, result: None) -> None:
        log = self.log
        if log.is_watched_thread() or (log.thread.may_go_over() and not log.passes.count):
            log.optimizer(optimizer, call_site(3))

    @never_raises
    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        log, index = self.log, self.log.index
        if not log.is_watched_thread():
            log.thread.steps_elsewhere()
            return
        one = log.optimizer(optimizer)
        number, params, current = one.number, one.params, log.passes.current
        if current is not None:
            present, _, changed = index.changes(params)
            index.with_new_grad |= changed
            log.emit(Added(current, changed))
        else:
            present = log.detect_changes(params)
        if log.stepping and number in (unfinished := [step.optimizer for step in log.stepping]):
            del log.stepping[unfinished.index(number) :]  # its last step has ended in an exception
        step = Step(site := call_site(), number, params, present)
        if present and not present & index.with_new_grad:
            step.norms = index.norms(present)
        step.frozen = index.frozen(params) if not present else 0
        step.scaler, step.backward = log.scaler_steps > 0, current is not None
        step.moved = one.written not in (-1, _written(optimizer))
        if one.named != params:
            one.named = params
            log.find_names(sys._getframe(2), optimizer=number, params=params)
        log.note_callers(site)
        log.stepping.append(step)
        log.steps += 1
        log.passes.last_update = _torch.sequence_number()
        log.emit(step)

    @never_raises
    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        log = self.log
        if log.stepping and log.is_watched_thread():
            step = log.stepping[-1]
            if (args[1] if len(args) > 1 else None) is not None or kwargs.get("closure") is not None:
                self._after_closure(step)
            log.stepping.pop()
            log.optimizer(optimizer).written = _written(optimizer)

    def _after_closure(self, step: Step) -> None:
        """Note whether a closure that ran no backward pass has cleared or filled gradients by itself."""
        self.log.detect_changes(step.params)
        since = takewhile(lambda event: event is not step, reversed(self.log.events))
        step.closure = step.closure or any(isinstance(event, (Clear, GradEdited)) for event in since)

    def _zero_grad(self, original: Original) -> Any:
        def zero_grad(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
            original.call(optimizer, *args, **kwargs)
            if self.log.is_watched_thread():
                self._cleared(optimizer)

        return zero_grad

    @never_raises
    def _cleared(self, optimizer: Optimizer) -> None:
        self.log.cleared(call_site(3), self.log.optimizer(wrapped_optimizer(optimizer)).params)


def _written(optimizer: Optimizer) -> int:
    """Return how often an optimizer's weights have been written to; the first of a group stands for it."""
    return sum([group["params"][0]._version for group in optimizer.param_groups if group["params"]])

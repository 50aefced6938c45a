"""The listener for optimizers: their creation, their steps and their ``zero_grad()``."""

from __future__ import annotations

import sys
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from ... import _torch
from ..._process import Patches, ThreadHook
from ..events import Added, Clear, GradEdited, Site, Step
from ..frames import call_lines, call_site
from ..state.names import wrapped_optimizer
from ..state.param_index import first_values
from ..state.watched import WatchedOptimizer
from .event_log import EventLog, Listener, never_raises

_FROZEN_CHECK_EVERY = 8  # steps
_PARAMS, _ELEMENTS = 3, 64  # numbers of weights, and of elements in each, that are compared to detect changes


class OptimizerListener(Listener):
    """Emits events for the creation, the steps and the ``zero_grad()`` of all optimizers."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self._newest: WeakIdKeyDictionary = WeakIdKeyDictionary()
        """First parameter of an optimizer -> line that created the optimizer -> the newest optimizer from this line."""

    def patch(self, patches: Patches) -> None:
        """Replace ``__init__`` and ``zero_grad`` of all optimizers."""
        patches.replace(Optimizer, "__init__", self.around(after=self._note_creation, anywhere=True))
        patches.replace(Optimizer, "zero_grad", self.around(after=self._cleared))

    def hooks(self) -> list[Any]:
        """Register hooks that run before and after the steps of all optimizers."""
        callbacks = {"optimizer_pre_hooks": self._before_step, "optimizer_post_hooks": self._after_step}
        return [ThreadHook(callback, kind, every_thread=True) for kind, callback in callbacks.items()]

    def _note_creation(self, result: None, optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
        log = self.log
        if log.is_watched_thread() or (log.thread.may_go_over() and not log.passes.count):
            lines = call_lines(sys._getframe(2))
            watched = log.optimizer(optimizer, lines)
            for param in _params(optimizer)[:1] if lines else ():
                newest: dict[Site, WatchedOptimizer] = self._newest.setdefault(param, {})
                if (previous := newest.get(lines[0])) is not None:  # only an optimizer that stepped becomes a parent
                    watched.parent = previous if previous.written >= 0 else previous.parent
                    previous.parent = None
                newest[lines[0]] = watched

    @never_raises
    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        log, index = self.log, self.log.index
        if not log.is_watched_thread():
            log.thread.steps_elsewhere()
            return
        if wrapped_optimizer(optimizer) is not optimizer:
            return  # only the step of the wrapped optimizer is recorded
        watched = log.optimizer(optimizer)
        number, params, current = watched.number, watched.params, log.passes.current
        if current is not None:
            present, _, changed = index.changes(params)
            index.with_new_grad |= changed
            log.emit(Added(current, changed))
        else:
            present = log.detect_changes(params)
        if log.stepping and number in (unfinished := [step.optimizer for step in log.stepping]):
            del log.stepping[unfinished.index(number) :]  # the last step of this optimizer ended in an exception
        step = Step(site := call_site(), number, params, present)
        if present and not present & index.with_new_grad:
            step.norms = index.norms(present)
        step.frozen = index.frozen(params) if not present else 0
        step.scaler, step.backward = log.scaler_steps > 0, current is not None
        step.moved = watched.written not in (-1, written := _written(optimizer))
        step.resumes = _count_predecessors(watched, optimizer, written)
        if step.resumes:
            step.lines = call_lines(sys._getframe(2))
        if watched.named != params:
            watched.named = params
            log.find_names(sys._getframe(2), optimizer=number, params=params)
        log.note_callers(site)
        self._copy_frozen(watched, optimizer)
        log.stepping.append(step)
        log.trace.busy = step.present > 0 and args[1:] == () and not kwargs
        log.steps += 1
        log.passes.last_update = _torch.sequence_number()
        log.emit(step)

    def _copy_frozen(self, watched: WatchedOptimizer, optimizer: Optimizer) -> None:
        """Copy values of weights that have a gradient but require none, every 8th step or if the last copy had any."""
        watched.frozen_checks += 1
        if watched.frozen_checks % _FROZEN_CHECK_EVERY == 0 or watched.frozen:
            frozen = [param for param in _params(optimizer) if not param.requires_grad and param.grad is not None]
            watched.frozen = list(zip(frozen, _values(frozen) or (), strict=False))

    @never_raises
    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        log = self.log
        log.trace.busy = False
        if log.stepping and log.is_watched_thread() and wrapped_optimizer(optimizer) is optimizer:
            step = log.stepping[-1]
            if (args[1] if len(args) > 1 else None) is not None or kwargs.get("closure") is not None:
                log.detect_changes(step.params)  # the closure may clear or edit gradients without a backward pass
                since = takewhile(lambda event: event is not step, reversed(log.events))
                step.closure = step.closure or any(isinstance(event, (Clear, GradEdited)) for event in since)
            log.stepping.pop()
            watched = log.optimizer(optimizer)
            if watched.written < 0:
                watched.has_memory = _has_memory(optimizer)
            watched.written = _written(optimizer)
            moved = [param for param, old in watched.frozen if not torch.equal(first_values(param, _ELEMENTS), old)]
            step.frozen_moved = self.log.index.known_bits(moved)
            if watched.values is not None:
                watched.values = _values(_params(optimizer))

    def _cleared(self, result: None, optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
        self.log.cleared(call_site(3), self.log.optimizer(optimizer).params)


def _written(optimizer: Optimizer) -> int:
    return sum([group["params"][0]._version for group in optimizer.param_groups if group["params"]])


def _count_predecessors(watched: WatchedOptimizer, optimizer: Optimizer, written: int) -> int:
    """Return the number of predecessors at an optimizer's first step, or 0 later or if the last one had no momentum."""
    parent, watched.parent = watched.parent, None
    if parent is None or watched.written >= 0:
        return 0
    values = None if parent.values is None else _values(_params(optimizer))
    if parent.values is None or values is None:
        same = written == parent.written
    else:
        same = len(values) == len(parent.values) and all(map(torch.equal, values, parent.values))
    watched.predecessors = parent.predecessors + 1 if same else 0
    watched.values = []  # later steps store values, even if this optimizer did not begin with its parent's weights
    return watched.predecessors if parent.has_memory else 0


def _params(optimizer: Optimizer) -> list[Tensor]:
    return [param for group in optimizer.param_groups for param in group["params"]]


def _values(params: list[Tensor]) -> list[Tensor] | None:
    params = params[:_PARAMS]
    if any(type(param) not in (Tensor, nn.Parameter) or param.device.type == "meta" for param in params):
        return None
    with torch.no_grad(), _torch.disable_current_modes():
        return [first_values(param, _ELEMENTS).clone() for param in params]


def _has_memory(optimizer: Optimizer) -> bool:
    """Return whether an optimizer's state has tensors with the shape of a weight, such as momentum or averages."""
    states = [(param, optimizer.state.get(param, {})) for param in _params(optimizer)[:_PARAMS]]
    return any(isinstance(x, Tensor) and x.shape == param.shape for param, state in states for x in state.values())

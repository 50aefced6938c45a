"""Optimizers: how they are made, again and again perhaps, step, and clear."""

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

_LOOK_EVERY = 8  # steps
_PARAMS, _ELEMENTS = 3, 64  # of an optimizer, to tell whether its weights are as they were


class OptimizerListener(Listener):
    """Listens to optimizers."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self._newest: WeakIdKeyDictionary = WeakIdKeyDictionary()
        """First parameter -> line -> the newest optimizer that it has made over these weights."""

    def patch(self, patches: Patches) -> None:
        """Replace methods of all optimizers."""
        patches.replace(Optimizer, "__init__", self.around(after=self._made, anywhere=True))
        patches.replace(Optimizer, "zero_grad", self.around(after=self._cleared))

    def hooks(self) -> list[Any]:
        """Hear of steps."""
        return [
            ThreadHook(self._before_step, "optimizer_pre_hooks", every_thread=True),
            ThreadHook(self._after_step, "optimizer_post_hooks", every_thread=True),
        ]

    def _made(self, result: None, optimizer: Optimizer, *given: Any, **named: Any) -> None:
        log = self.log
        if log.is_watched_thread() or (log.thread.may_go_over() and not log.passes.count):
            lines = call_lines(sys._getframe(2))
            one = log.optimizer(optimizer, lines)
            if lines:
                self._note_parent(one, optimizer, lines[0])

    def _note_parent(self, one: WatchedOptimizer, optimizer: Optimizer, site: Site) -> None:
        """Note which optimizer the same line has made before over the same weights."""
        for param in _params(optimizer)[:1]:
            newest: dict[Site, WatchedOptimizer] = self._newest.setdefault(param, {})
            if (known := newest.get(site)) is not None:
                one.parent = known if known.written >= 0 else known.parent  # one that was only cleared has kept nothing
                known.parent = None
            newest[site] = one

    @never_raises
    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        log, index = self.log, self.log.index
        if not log.is_watched_thread():
            log.thread.steps_elsewhere()
            return
        if wrapped_optimizer(optimizer) is not optimizer:
            return  # the step of the one inside counts
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
        step.moved = one.written not in (-1, written := _written(optimizer))
        step.resumes = _resumes(one, optimizer, written)
        if step.resumes:
            step.lines = call_lines(sys._getframe(2))
        if one.named != params:
            one.named = params
            log.find_names(sys._getframe(2), optimizer=number, params=params)
        log.note_callers(site)
        self._before_frozen(one, optimizer)
        log.stepping.append(step)
        log.trace.busy = step.present > 0 and args[1:] == () and not kwargs
        log.steps += 1
        log.passes.last_update = _torch.sequence_number()
        log.emit(step)

    def _before_frozen(self, one: WatchedOptimizer, optimizer: Optimizer) -> None:
        """Copy a few values of what requires no gradient and has one: looked for every eighth time, until found."""
        one.looks += 1
        if one.looks % _LOOK_EVERY == 0 or one.frozen:
            frozen = [param for param in _params(optimizer) if not param.requires_grad and param.grad is not None]
            values = _values(frozen) if frozen else None
            one.frozen = [] if values is None else list(zip(frozen, values, strict=False))

    @never_raises
    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        log = self.log
        log.trace.busy = False
        if log.stepping and log.is_watched_thread() and wrapped_optimizer(optimizer) is optimizer:
            step = log.stepping[-1]
            if (args[1] if len(args) > 1 else None) is not None or kwargs.get("closure") is not None:
                self._after_closure(step)
            log.stepping.pop()
            one = log.optimizer(optimizer)
            if one.written < 0:
                one.lasting = _has_memory(optimizer)
            one.written = _written(optimizer)
            moved = [param for param, old in one.frozen if not torch.equal(first_values(param, _ELEMENTS), old)]
            step.frozen_moved = self.log.index.known_bits(moved)
            if one.values is not None:
                one.values = _values(_params(optimizer))

    def _after_closure(self, step: Step) -> None:
        """Note whether a closure that ran no backward pass has cleared or filled gradients by itself."""
        self.log.detect_changes(step.params)
        since = takewhile(lambda event: event is not step, reversed(self.log.events))
        step.closure = step.closure or any(isinstance(event, (Clear, GradEdited)) for event in since)

    def _cleared(self, result: None, optimizer: Optimizer, *given: Any, **named: Any) -> None:
        self.log.cleared(call_site(3), self.log.optimizer(optimizer).params)


def _written(optimizer: Optimizer) -> int:
    """Return how often an optimizer's weights have been written to; the first of a group stands for it."""
    return sum([group["params"][0]._version for group in optimizer.param_groups if group["params"]])


def _resumes(one: WatchedOptimizer, optimizer: Optimizer, written: int) -> int:
    """Return how many optimizers went before one, at its first step; 0 if the weights are not theirs."""
    parent, one.parent = one.parent, None
    if parent is None or one.written >= 0:
        return 0
    values = None if parent.values is None else _values(_params(optimizer))
    if parent.values is None or values is None:
        same = written == parent.written
    else:
        same = len(values) == len(parent.values) and all(map(torch.equal, values, parent.values))
    one.before = parent.before + 1 if same else 0
    one.values = []  # from now on they are kept, also if they were somebody else's this time
    return one.before if parent.lasting else 0


def _params(optimizer: Optimizer) -> list[Tensor]:
    return [param for group in optimizer.param_groups for param in group["params"]]


def _values(params: list[Tensor]) -> list[Tensor] | None:
    """Return copies of a few weights, left on their device; None for tensors without values to look at."""
    params = params[:_PARAMS]
    if any(type(param) not in (Tensor, nn.Parameter) or param.device.type == "meta" for param in params):
        return None
    with torch.no_grad(), _torch.disable_current_modes():
        return [first_values(param, _ELEMENTS).clone() for param in params]


def _has_memory(optimizer: Optimizer) -> bool:
    """Return whether an optimizer keeps tensors of the shape of its weights, as momentum and averages are."""
    return any(
        isinstance(value, Tensor) and value.shape == param.shape
        for param in _params(optimizer)[:_PARAMS]
        for value in optimizer.state.get(param, {}).values()
    )

"""The backward passes in each ``.grad``, and the steps that used them.

Parameters whose gradients have the same history share a group, so the cost depends only on the number of groups.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from .. import events
from ..events import NO_SITE, Backward, Clear, Site, Step, bit_positions, union_bits
from .facts import GradPass, MaybeCleared, ParamGroupState, SinceLastStep, StepFacts, unique_sorted

_MOST_PASSES = 128
_FIRST_PASSES, _MOST_LOSSES = 64, 16  # _MOST_LOSSES holds for each call path
MOST_SIZES = 256
_MOST_SINCE_STEP = 512


class GradState:
    """The state of all gradients: split an event with ``parts``, and pass each part to ``fact``, then to ``take``."""

    def __init__(self) -> None:
        self._takers: dict[type, Callable[[Any], None]] = {
            events.Added: self._added,
            events.Backward: self._backward,
            events.Clear: self._clear,
            events.GradEdited: self._edit,
            events.Forward: self._called,
            events.OptimizerMade: self._optimizer_made,
            events.ParamSlotReused: self._reused,
            events.ScalerStep: self._scaler_step,
            events.Step: self._step,
            events.Unscale: self._unscale,
            MaybeCleared: self._empty,
        }
        self._groups: list[ParamGroupState] = []
        self._grouped = 0
        self.since: dict[int, SinceLastStep] = {}
        self.steps: dict[int, int] = {}
        self.last: dict[int, StepFacts] = {}
        """Index of an optimizer -> the facts of its newest step."""
        self.sizes: defaultdict[int, list[int]] = defaultdict(list)
        """Index of an optimizer -> number of new passes in each of its first steps whose passes have one call path."""
        self.lines: defaultdict[int, set[Site]] = defaultdict(set)
        """Index of an optimizer -> the lines of the newest pass in each of its steps."""
        self.optimizers: dict[int, events.OptimizerMade] = {}
        self.step_calls: dict[int, int] = {}
        """Index of an optimizer -> its number of steps, including those that a GradScaler skipped."""
        self.params_of: dict[int, int] = {}
        """Index of an optimizer -> its parameters, as of its creation or newest step."""
        self.covered = 0
        """Parameters that any optimizer holds."""
        self.last_clear: Site = NO_SITE
        """Line of the last ``zero_grad()``."""
        self.fed: set[int] = set()
        """Indices of optimizers that stepped with a gradient, or with a closure that computed or changed gradients."""
        self.reached = 0
        """Parameters that any backward pass added to."""
        self.training = 0
        """Parameters of models that were called in training mode with gradients enabled."""
        self.given_outputs = 0
        """The subset of ``training`` whose models were called with an input that required a gradient."""
        self.training_sites: set[Site] = set()
        """Lines that take steps, or call models in training mode with gradients enabled."""
        self.called_since_step = False
        """True if a model was called with gradients enabled since the last step."""
        self.last_step = Step(NO_SITE, -1, 0, 0)
        """The newest step of any optimizer."""
        self.newest, self.newest_site = 0, NO_SITE
        """Number and line of the newest backward pass."""
        self.first_passes: list[Backward] = []
        """The first passes that have added to gradients."""
        self.cuts: Sequence[Any] = ()
        """The newest ``Backward.cuts`` that is not empty."""
        self.losses: defaultdict[int, deque[float]] = defaultdict(lambda: deque(maxlen=_MOST_LOSSES))
        """Call path -> its last finite losses."""
        self._zero = self._nonzero = 0
        """Parameters whose gradient was all zeros when it was last read, and those whose gradient was not."""

    def parts(self, event: Any) -> list[Any]:
        """Return [``event``], or [clear, ``event``] if the event's norms show zeros that no watched call explains.

        The clear is a Clear of all parameters with zero gradients if any of these gradients was nonzero when last read.
        Otherwise, it is a MaybeCleared of those parameters whose gradients are read for the first time: their passes do
        not count as lost. A gradient that was already zeros when last read, for example after a pass, needs no clear.
        """
        norms = getattr(event, "norms", None)
        if norms is None or not isinstance(event, (Backward, events.GradEdited)):
            return [event]
        params = event.present if isinstance(event, Backward) else event.params
        was_zero, was_nonzero = self._zero, self._nonzero
        zeros = self._note_zeros(params, norms)
        unread, cleared = zeros & ~was_zero & ~was_nonzero, zeros & was_nonzero
        if isinstance(event, Backward):
            event.norms, event.present, event.nonzero = None, event.present & ~zeros, params & ~zeros
        else:
            event.params &= ~(zeros if cleared else zeros & ~was_zero)
        emptied: list[Any] = [Clear(NO_SITE, zeros)] if cleared else [MaybeCleared(unread)] if unread else []
        return [*emptied, event]

    def fact(self, event: Any) -> Any:
        """Return the fact about ``event`` for the rules, from the state before the event, or None if there is none."""
        kind = type(event)
        if kind is Step:
            self.last[event.optimizer] = facts = self._facts(event)
            return None if event.closure else facts
        if kind is events.Added:
            if not event.params:
                return None
            used = event.params & self.params_of.get(event.backward.closure_of, 0)
            event.groups = self.groups(used) + self.groups(event.params & ~used)
        elif kind is events.ScalerStep and not event.taken:
            event.refused = any(group.fresh for group in self.groups(event.params))
        elif kind is events.Clip:
            event.groups = self.groups(event.params)
        return event

    def take(self, event: Any) -> None:
        """Update the state with an event."""
        if (taker := self._takers.get(type(event))) is not None:
            taker(event)

    def _empty(self, event: Clear | MaybeCleared | events.ParamSlotReused) -> None:
        for group in self.groups(event.params):
            group.passes, group.edited = [], False
        self._merge()

    def _facts(self, step: Step) -> StepFacts:
        groups, since = self.groups(step.present), self.since[step.optimizer]
        passes = [grad_pass for group in groups for grad_pass in group.passes]
        fresh = unique_sorted([grad_pass.backward for grad_pass in passes if grad_pass.used_by < 0])
        edited = any(group.edited for group in groups)
        return StepFacts(step, self.steps.get(step.optimizer, 0) + 1, groups, since, passes, fresh, edited)

    def groups(self, params: int) -> list[ParamGroupState]:
        """Return the groups of ``params``, after splitting groups that also contain other parameters."""
        if missing := params & ~self._grouped:
            self._groups.append(ParamGroupState(missing))
            self._grouped |= missing
        matching = []
        for group in list(self._groups):
            common = group.params & params
            if common == group.params:
                matching.append(group)
            elif common:
                matching.append(part := group.split_off(common))
                self._groups.append(part)
        return matching

    def _backward(self, event: Backward) -> None:
        self.newest, self.newest_site = event.number, event.site
        self.cuts = event.cuts or self.cuts
        if type(event.loss) is float and math.isfinite(event.loss):
            if len(self.losses) > _MOST_PASSES:
                self.losses.clear()
            self.losses[event.call_path].append(event.loss)
        for since in self.since.values():
            since.others += 1
            since.after = 0

    def _added(self, event: events.Added) -> None:
        backward, params = event.backward, event.params
        if not params:
            return
        self._note_zeros(params, event.norms)
        backward.zeros |= params & self._zero
        used = params & self.params_of.get(backward.closure_of, 0)  # a step uses the passes that its closure runs
        backward.added |= params
        self.reached |= params
        if len(self.first_passes) < _FIRST_PASSES:
            self.first_passes.append(backward)
        backward.step_index = self.steps.get(backward.closure_of, 0)
        backward.stepped_params |= used
        for group in event.groups:
            group.passes.append(GradPass(backward, backward.closure_of if group.params & used else -1))
            if len(group.passes) > _MOST_PASSES:
                del group.passes[4 : _MOST_PASSES // 2]
        elsewhere = params & ~self.covered
        for optimizer, optimizer_params in self.params_of.items():
            since = self.since[optimizer]
            since.elsewhere |= elsewhere
            if optimizer_params & params and backward not in since.backwards[-1:]:
                since.others -= 1
                if len(since.backwards) < _MOST_SINCE_STEP:
                    since.backwards.append(backward)
        if len(self._groups) > 2:
            self._merge()

    def _hold(self, optimizer: int, params: int) -> None:
        if self.params_of.get(optimizer) != params:
            self.params_of[optimizer] = params
            self.covered = union_bits(self.params_of.values())

    def _called(self, event: events.Forward) -> None:
        if event.grad and event.training:
            self.training |= event.params
            self.given_outputs |= event.params if event.fed else 0
            if len(self.training_sites) < _FIRST_PASSES:
                self.training_sites.add(event.site)
        self.called_since_step = self.called_since_step or event.grad
        for since in self.since.values():
            since.called |= event.params
            since.after |= event.params if event.grad else 0

    def _note_zeros(self, params: int, norms: Any) -> int:
        """Record and return the subset of ``params`` whose gradients are zeros; it is empty if ``norms`` is None."""
        measured = [] if norms is None else [*zip(bit_positions(params), norms, strict=True)]
        zeros = sum(1 << number for number, norm in measured if not float(norm))
        self._zero = self._zero & ~params | zeros
        self._nonzero = self._nonzero & ~params | (0 if norms is None else params & ~zeros)
        return zeros

    def _clear(self, event: events.Clear) -> None:
        lost: list[events.Backward] = []
        for group in self.groups(event.params):
            for grad_pass in group.fresh:
                grad_pass.backward.cleared_params |= group.params
                lost.append(grad_pass.backward)
        event.lost = unique_sorted(lost)
        if event.site != NO_SITE:
            self.last_clear = event.site
        for optimizer, params in self.params_of.items() if event.lost else ():
            if params & event.params and len(self.since[optimizer].clearings) < _MOST_SINCE_STEP:
                self.since[optimizer].clearings.append(event)
        self._empty(event)

    def _reused(self, event: events.ParamSlotReused) -> None:
        """Forget parameters that no longer exist, since new parameters now have their bits."""
        self._note_zeros(event.params, None)
        for optimizer, params in [*self.params_of.items()]:
            self._hold(optimizer, params & ~event.params)
        self._empty(event)

    def _edit(self, event: events.GradEdited) -> None:
        for group in self.groups(event.params):
            group.edited = True

    def _optimizer_made(self, event: events.OptimizerMade) -> None:
        self.optimizers[event.optimizer] = event
        self.since[event.optimizer] = SinceLastStep()
        self._hold(event.optimizer, event.params)

    def _step(self, event: events.Step) -> None:
        optimizer = event.optimizer
        facts = self.last[optimizer]
        self._hold(optimizer, event.params)
        if len(self.training_sites) < _FIRST_PASSES:
            self.training_sites.add(event.site)
        self.last_step, self.called_since_step = event, False
        self.steps[optimizer] = facts.number
        if not event.scaler:
            self.step_calls[optimizer] = self.step_calls.get(optimizer, 0) + 1
        if event.present or event.closure:
            self.fed.add(optimizer)
        sizes, fresh = self.sizes[optimizer], facts.fresh
        same_path = len({backward.call_path for backward in fresh}) == 1
        if same_path and not (event.closure or event.backward or facts.edited) and len(sizes) < MOST_SIZES:
            sizes.append(len(fresh))
        if fresh and len(self.lines[optimizer]) < _FIRST_PASSES:
            self.lines[optimizer].add(fresh[-1].site)
        for group in facts.groups:
            for grad_pass in group.passes:
                if grad_pass.used_by < 0:
                    grad_pass.backward.step_index = facts.number
                grad_pass.used_by = optimizer
                grad_pass.backward.stepped_params |= group.params
                grad_pass.backward.first_step_pass = grad_pass.backward.first_step_pass or self.newest
            group.edited = False
        self.since[optimizer] = SinceLastStep()

    def _scaler_step(self, event: events.ScalerStep) -> None:
        self.step_calls[event.optimizer] = self.step_calls.get(event.optimizer, 0) + 1
        if not event.taken:  # the gradients were inf or NaN
            for group in self.groups(event.params):
                for grad_pass in group.passes:
                    grad_pass.backward.skipped_by_scaler = True
            self.since[event.optimizer] = SinceLastStep()

    def _unscale(self, event: events.Unscale) -> None:
        for group in self.groups(event.params):
            for grad_pass in group.passes:
                grad_pass.unscaled = True

    def _merge(self) -> None:
        """Merge all groups without passes and edits into one group."""
        empty = [group for group in self._groups if not group.passes and not group.edited]
        if len(empty) > 1:
            filled = [group for group in self._groups if group.passes or group.edited]
            self._groups = [*filled, ParamGroupState(union_bits(group.params for group in empty))]

"""Which backward passes are in which ``.grad``, and which steps have used them.

Parameters whose gradients have the same history share a group, so a thousand parameters cost no more than two.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from .. import events
from ..events import NO_SITE, Backward, Clear, Site, Step, bit_positions, union_bits
from .facts import HeldPass, MaybeCleared, ParamGroupState, SinceLastStep, StepFacts, unique_sorted

_MOST_HELD = 128
_FIRST_PASSES, _LOSSES = 64, 16
MOST_SIZES = 256
_MOST_REMEMBERED = 512


class GradState:
    """Follows the events: ``parts`` of each, ``fact`` as it is before a part is taken in, and then ``take``."""

    def __init__(self) -> None:
        self._takers: dict[type, Callable[[Any], None]] = {
            events.Added: self._added,
            events.Backward: self._backward,
            events.Clear: self._clear,
            events.GradEdited: self._edit,
            events.Forward: self._called,
            events.OptimizerMade: self._made,
            events.ParamSlotReused: self._reused,
            events.ScalerStep: self._scaler_step,
            events.Step: self._step,
            events.Unscale: self._unscale,
            MaybeCleared: self._empty,
        }
        self._groups: list[ParamGroupState] = []
        self._known = 0
        self.since: dict[int, SinceLastStep] = {}
        self.steps: dict[int, int] = {}
        self.last: dict[int, StepFacts] = {}
        """The newest step of each optimizer."""
        self.sizes: defaultdict[int, list[int]] = defaultdict(list)
        """How many new passes of one line each step of an optimizer has applied; of the first steps only."""
        self.lines: defaultdict[int, set[Site]] = defaultdict(set)
        """Lines whose passes an optimizer has applied as the newest."""
        self.optimizers: dict[int, events.OptimizerMade] = {}
        self.step_calls: dict[int, int] = {}
        """Steps of each optimizer, those that its scaler skipped included."""
        self.params_of: dict[int, int] = {}
        """Parameters of each optimizer, as far as it was seen at work."""
        self.covered = 0
        """Parameters that some optimizer holds."""
        self.last_clear: Site = NO_SITE
        """The line that cleared gradients last."""
        self.fed: set[int] = set()
        """Optimizers that have found a gradient in a step, or that were given a closure which made some."""
        self.reached = 0
        """Parameters that a backward pass has added to."""
        self.training = self.given_outputs = 0
        """Parameters of models that were called in training mode, and of those that were given others' outputs."""
        self.training_sites: set[Site] = set()
        """Lines that take steps, or call models in training."""
        self.called_since_step = False
        """True if a model was called with gradients since the last step."""
        self.last_step = Step(NO_SITE, -1, 0, 0)
        """The newest of all."""
        self.newest = 0
        """Number of the newest backward pass."""
        self.newest_site = NO_SITE
        """Its line."""
        self.first_passes: list[Backward] = []
        """The first that have added to gradients."""
        self.cuts: Sequence[Any] = ()
        """What cuts the newest graph that was looked at, each an Op."""
        self.losses: defaultdict[int, deque[float]] = defaultdict(lambda: deque(maxlen=_LOSSES))
        """Call path -> its last losses that were finite."""
        self._zero = self._nonzero = 0
        """Parameters whose gradient was all zeros when it was seen last, and those where it was not."""

    def parts(self, event: Any) -> list[Any]:
        """Return what an event stands for: zeros that are found in ``.grad`` are a clearing that nobody has told of.

        Somebody has cleared them if one of them had been something else. What a pass itself has left at zero, nobody
        has cleared. Of what was not seen before nobody knows: it holds nothing, and no pass counts as lost.
        """
        norms = getattr(event, "norms", None)
        if norms is None or not isinstance(event, (Backward, events.GradEdited)):
            return [event]
        params = event.found if isinstance(event, Backward) else event.params
        zeros = _zeros(params, norms)
        unseen = zeros & ~self._zero & ~self._nonzero
        cleared = zeros & self._nonzero
        if isinstance(event, Backward):
            event.norms, event.found, event.nonzero = None, event.found & ~zeros, params & ~zeros
        else:
            event.params &= ~(zeros if cleared else zeros & ~self._zero)
        emptied: list[Any] = [Clear(NO_SITE, zeros)] if cleared else [MaybeCleared(unseen)] if unseen else []
        self._zero, self._nonzero = self._zero & ~params | zeros, self._nonzero & ~params | params & ~zeros
        return [*emptied, event]

    def fact(self, event: Any) -> Any:
        """Return what rules hear of an event, as things are before it is taken in; None if they hear nothing."""
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
        """Take an event in."""
        if (taker := self._takers.get(type(event))) is not None:
            taker(event)

    def _empty(self, event: MaybeCleared | events.ParamSlotReused) -> None:
        for group in self.groups(event.params):
            group.empty()
        self._merge()

    def _facts(self, step: Step) -> StepFacts:
        groups, since = self.groups(step.present), self.since[step.optimizer]
        held = [one for group in groups for one in group.held]
        fresh = unique_sorted([one.backward for one in held if one.used_by < 0])
        edited = any(group.edited for group in groups)
        return StepFacts(step, self.steps.get(step.optimizer, 0) + 1, groups, since, held, fresh, edited)

    def groups(self, params: int) -> list[ParamGroupState]:
        """Return the groups of some parameters, split off where a group has others, too."""
        if missing := params & ~self._known:
            self._groups.append(ParamGroupState(missing))
            self._known |= missing
        found = []
        for group in list(self._groups):
            common = group.params & params
            if common == group.params:
                found.append(group)
            elif common:
                found.append(part := group.split_off(common))
                self._groups.append(part)
        return found

    def _backward(self, event: Backward) -> None:
        self.newest, self.newest_site = event.number, event.site
        self.cuts = event.cuts or self.cuts
        if type(event.loss) is float and math.isfinite(event.loss):
            if len(self.losses) > _MOST_HELD:
                self.losses.clear()
            self.losses[event.call_path].append(event.loss)
        for since in self.since.values():
            since.others += 1
            since.after = 0

    def _added(self, event: events.Added) -> None:
        backward, params = event.backward, event.params
        if not params:
            return
        self._seen(params, event.norms)
        backward.zeros |= params & self._zero
        used = params & self.params_of.get(backward.closure_of, 0)  # a closure's pass is used by the step that calls it
        backward.added |= params
        self.reached |= params
        if len(self.first_passes) < _FIRST_PASSES:
            self.first_passes.append(backward)
        backward.step_index = self.steps.get(backward.closure_of, 0)
        backward.stepped_params |= used
        for group in event.groups:
            group.held.append(HeldPass(backward, backward.closure_of if group.params & used else -1))
            if len(group.held) > _MOST_HELD:
                del group.held[4 : _MOST_HELD // 2]
        elsewhere = params & ~self.covered
        for optimizer, own in self.params_of.items():
            since = self.since[optimizer]
            since.elsewhere |= elsewhere
            if own & params and backward not in since.backwards[-1:]:
                since.others -= 1
                if len(since.backwards) < _MOST_REMEMBERED:
                    since.backwards.append(backward)
        if len(self._groups) > 2:
            self._merge()

    def _hold(self, optimizer: int, params: int) -> None:
        """Note what an optimizer holds."""
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

    def _seen(self, params: int, norms: Any) -> None:
        """Note which gradients are all zeros; without norms it is not known."""
        self._zero &= ~params
        self._nonzero &= ~params
        if norms is not None:
            self._zero |= (zeros := _zeros(params, norms))
            self._nonzero |= params & ~zeros

    def _clear(self, event: events.Clear) -> None:
        lost: list[events.Backward] = []
        for group in self.groups(event.params):
            for held in group.fresh:
                held.backward.cleared_params |= group.params
                lost.append(held.backward)
            group.empty()
        event.lost = unique_sorted(lost)
        if event.site != NO_SITE:
            self.last_clear = event.site
        for optimizer, params in self.params_of.items() if event.lost else ():
            if params & event.params and len(self.since[optimizer].clearings) < _MOST_REMEMBERED:
                self.since[optimizer].clearings.append(event)
        self._merge()

    def _reused(self, event: events.ParamSlotReused) -> None:
        """The bits of parameters that are gone go to new ones."""
        self._seen(event.params, None)
        for optimizer, params in [*self.params_of.items()]:
            self._hold(optimizer, params & ~event.params)
        self._empty(event)

    def _edit(self, event: events.GradEdited) -> None:
        for group in self.groups(event.params):
            group.edited = True

    def _made(self, event: events.OptimizerMade) -> None:
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
        alike = not (event.closure or event.backward or facts.edited) and len({one.call_path for one in fresh}) == 1
        if alike and len(sizes) < MOST_SIZES:
            sizes.append(len(fresh))
        if fresh and len(self.lines[optimizer]) < _FIRST_PASSES:
            self.lines[optimizer].add(fresh[-1].site)
        for group in facts.groups:
            for held in group.held:
                if held.used_by < 0:
                    held.backward.step_index = facts.number
                held.used_by = optimizer
                held.backward.stepped_params |= group.params
                held.backward.first_step_pass = held.backward.first_step_pass or self.newest
            group.edited = False
        self.since[optimizer] = SinceLastStep()

    def _scaler_step(self, event: events.ScalerStep) -> None:
        self.step_calls[event.optimizer] = self.step_calls.get(event.optimizer, 0) + 1
        if not event.taken:  # the gradients were inf or NaN; it has had its chance to use them
            for group in self.groups(event.params):
                for held in group.held:
                    held.backward.skipped_by_scaler = True
            self.since[event.optimizer] = SinceLastStep()

    def _unscale(self, event: events.Unscale) -> None:
        for group in self.groups(event.params):
            for held in group.held:
                held.unscaled = True

    def _merge(self) -> None:
        """Put groups together that hold nothing: most of a loop's life they all do."""
        empty = [group for group in self._groups if not group.held and not group.edited]
        if len(empty) > 1:
            kept = [group for group in self._groups if group.held or group.edited]
            self._groups = [*kept, ParamGroupState(union_bits(group.params for group in empty))]


def _zeros(params: int, norms: Any) -> int:
    """Return the parameters whose norm is exactly 0."""
    if norms is None:
        return 0
    return sum(1 << number for number, norm in zip(bit_positions(params), norms, strict=True) if not float(norm))

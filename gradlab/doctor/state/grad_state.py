"""Which backward passes are in which ``.grad``, and which steps have used them.

Parameters whose gradients have the same history share a group, so a thousand parameters cost no more than two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from .. import events
from ..events import NO_SITE, Backward, Clear, Site, Step, bit_positions, union_bits


@dataclass(slots=True, eq=False)
class HeldBackward:
    """A backward pass inside a ``.grad``."""

    backward: Backward
    used_by: int = -1
    """The optimizer whose step has used it last, -1 for none."""
    unscaled: bool = False


@dataclass(slots=True, eq=False)
class ParamGroupState:
    """Parameters whose gradients have the same contents."""

    params: int
    held: list[HeldBackward] = field(default_factory=list)
    edited: bool = False
    """True if ``.grad`` was written to by hand since it was last cleared or used."""
    forgotten: int = 0
    """How many more passes are inside, which steps have used: only some are remembered one by one."""

    @property
    def fresh(self) -> list[HeldBackward]:
        """What no step has used yet."""
        return [held for held in self.held if held.used_by < 0]

    def split_off(self, params: int) -> ParamGroupState:
        """Take some parameters out into a group of their own."""
        self.params &= ~params
        return replace(self, params=params, held=[replace(held) for held in self.held])

    def forget(self, first: int, after: int) -> None:
        """Remember only the number of those between two places."""
        self.forgotten += sum(held.used_by >= 0 for held in self.held[first:after])
        del self.held[first:after]

    def empty(self) -> None:
        """Nothing is inside any more."""
        self.held, self.forgotten, self.edited = [], 0, False


@dataclass
class SinceLastStep:
    """What has happened to an optimizer's parameters since its last step."""

    backwards: list[Backward] = field(default_factory=list)
    clearings: list[Clear] = field(default_factory=list)
    """Clearings of what no step had used."""
    others: int = 0
    """Backward passes that added to none of its parameters."""
    called: int = 0
    """Parameters of the models that were called."""
    after: int = 0
    """Parameters of those that were called, with gradients, since the newest backward pass."""
    elsewhere: int = 0
    """Parameters that backward passes have added to and that no optimizer holds."""


@dataclass(frozen=True)
class MaybeCleared:
    """Zeros were found in gradients that were not looked at before: cleared, or never anything else."""

    params: int


@dataclass
class StepFacts:
    """A step, with what it found in ``.grad``."""

    step: Step
    number: int
    """Which step of this optimizer it is, counted from 1."""
    groups: list[ParamGroupState]
    since: SinceLastStep

    held: list[HeldBackward] = field(init=False)
    """All that is in the gradients, without repeats by parameter."""
    fresh: list[Backward] = field(init=False)
    """The backward passes that no step has used yet, oldest first, each once."""
    edited: bool = field(init=False)
    """True if these gradients were changed by hand."""

    def __post_init__(self) -> None:
        """Take it together once, since nearly every rule asks."""
        self.held = [held for group in self.groups for held in group.held]
        self.fresh = unique_sorted([held.backward for held in self.held if held.used_by < 0])
        self.edited = any(group.edited for group in self.groups)


def unique_sorted(backwards: list[Backward]) -> list[Backward]:
    """Return backward passes without repeats, oldest first."""
    if len(backwards) < 2:
        return backwards
    return sorted({backward.number: backward for backward in backwards}.values(), key=lambda one: one.number)


_MOST_HELD = 128
_MOST_REMEMBERED = 512


class GradState:
    """Follows the events, and returns what each means for the gradients: the facts that rules hear."""

    def __init__(self) -> None:
        self._followers: dict[type[events.Event], Callable[[Any], Iterable[Any] | None]] = {
            events.Added: self._added,
            events.Backward: self._backward,
            events.Clear: self._clear,
            events.Clip: self._clip,
            events.GradEdited: self._edit,
            events.Forward: self._called,
            events.OptimizerMade: self._made,
            events.ParamSlotReused: self._reused,
            events.ScalerStep: self._scaler_step,
            events.Step: self._step,
            events.Unscale: self._unscale,
        }
        self._groups: list[ParamGroupState] = []
        self._known = 0
        self.since: dict[int, SinceLastStep] = {}
        self.steps: dict[int, int] = {}
        self.optimizers: dict[int, events.OptimizerMade] = {}
        self.sites: dict[int, Site] = {}
        """Where each optimizer has stepped last."""
        self.step_calls: dict[int, int] = {}
        """Steps of each optimizer, those that its scaler skipped included."""
        self.params_of: dict[int, int] = {}
        """Parameters of each optimizer, as far as it was seen at work."""
        self.last_clear: Site = NO_SITE
        """The line that cleared gradients last."""
        self.clear_sites: dict[Site, int] = {}
        """Line that clears -> the parameters whose gradients it has cleared."""
        self.fed: set[int] = set()
        """Optimizers that have found a gradient in a step, or that were given a closure which made some."""
        self.reached = 0
        """Parameters that a backward pass has added to."""
        self.last_stepped = -1
        """The optimizer that stepped last."""
        self.newest = 0
        """Number of the newest backward pass."""
        self._zero = self._nonzero = 0
        """Parameters whose gradient was all zeros when it was seen last, and those where it was not."""

    def follow(self, event: events.Event) -> Iterable[Any]:
        """Take an event in; yield the facts that rules hear, each while the state is as the fact says."""
        follower = self._followers.get(type(event))
        return (event,) if follower is None or (facts := follower(event)) is None else facts

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

    def _backward(self, event: events.Backward) -> Iterator[Any]:
        """A backward pass begins."""
        if event.norms is not None:  # zeros that no version has told of
            params, norms = event.found, event.norms
            zeros = _zeros(params, norms)
            event.norms = None
            event.found &= ~zeros
            yield from self._emptied(zeros)
            self._seen(params, norms)
            event.nonzero = params & ~zeros
        self.newest = event.number
        yield event
        for since in self.since.values():
            since.others += 1
            since.after = 0

    def _added(self, event: events.Added) -> Iterator[Any]:
        """A backward pass has added to gradients."""
        backward, params = event.backward, event.params
        if not params:
            return
        self._seen(params, event.norms)
        backward.zeros |= params & self._zero
        used = params & self.params_of.get(backward.closure_of, 0)  # a closure's pass is used by the step that calls it
        event.groups = groups = self.groups(used) + self.groups(params & ~used)
        yield event
        backward.added |= params
        self.reached |= params
        backward.step_index = self.steps.get(backward.closure_of, 0)
        backward.stepped_params |= used
        for group in groups:
            group.held.append(HeldBackward(backward, backward.closure_of if group.params & used else -1))
            if len(group.held) > _MOST_HELD:
                group.forget(4, _MOST_HELD // 2)
        covered = self.covered()
        for optimizer, own in self.params_of.items():
            self.since[optimizer].elsewhere |= params & ~covered
            if own & params:
                since = self.since[optimizer]
                if backward not in since.backwards[-1:]:
                    since.others -= 1
                    if len(since.backwards) < _MOST_REMEMBERED:
                        since.backwards.append(backward)
        self._merge()

    def covered(self) -> int:
        """Return the parameters that some optimizer holds."""
        return union_bits(self.params_of.values())

    def _called(self, event: events.Forward) -> None:
        """A model was called."""
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

    def _emptied(self, zeros: int) -> Iterable[Any]:
        """Take it in that zeros were found in ``.grad``.

        Somebody has cleared them if one of them had been something else. What a pass itself has left at zero, nobody
        has cleared. Of what was not seen before nobody knows: it holds nothing, and no pass counts as lost.
        """
        unseen = zeros & ~self._zero & ~self._nonzero
        if zeros & self._nonzero:
            self._clear(events.Clear(NO_SITE, zeros))
        elif unseen:
            for group in self.groups(unseen):
                group.empty()
            self._merge()
            return (MaybeCleared(unseen),)
        return ()

    def _clear(self, event: events.Clear) -> Iterable[Any]:
        """Gradients were cleared."""
        lost: list[events.Backward] = []
        for group in self.groups(event.params):
            for held in group.fresh:
                held.backward.cleared_params |= group.params
                lost.append(held.backward)
            group.empty()
        event.lost = unique_sorted(lost)
        if event.site != NO_SITE:
            self.last_clear = event.site
            if event.site in self.clear_sites or len(self.clear_sites) < _MOST_HELD:
                self.clear_sites[event.site] = self.clear_sites.get(event.site, 0) | event.params
        for optimizer, params in self.params_of.items() if event.lost else ():
            if params & event.params and len(self.since[optimizer].clearings) < _MOST_REMEMBERED:
                self.since[optimizer].clearings.append(event)
        self._merge()
        return ()

    def _reused(self, event: events.ParamSlotReused) -> Iterable[Any]:
        """The bits of parameters that are gone go to new ones."""
        self._seen(event.params, None)
        for group in self.groups(event.params):
            group.empty()
        for optimizer in self.params_of:
            self.params_of[optimizer] &= ~event.params
        self._merge()
        return ()

    def _edit(self, event: events.GradEdited) -> Iterable[Any]:
        """Gradients were written to by hand."""
        zeros = _zeros(event.params, event.norms)
        emptied = zeros if zeros & self._nonzero else zeros & ~self._zero
        facts = self._emptied(zeros)
        self._seen(event.params, event.norms)
        for group in self.groups(event.params & ~emptied):
            group.edited = True
        return facts

    def _made(self, event: events.OptimizerMade) -> None:
        """An optimizer was made."""
        self.optimizers[event.optimizer] = event
        self.since[event.optimizer] = SinceLastStep()
        self.params_of[event.optimizer] = event.params

    def _step(self, event: events.Step) -> Iterator[Any]:
        """An optimizer takes a step."""
        optimizer = event.optimizer
        self.params_of[optimizer] = event.params
        self.sites[optimizer] = event.site
        self.last_stepped = optimizer
        self.steps[optimizer] = self.steps.get(optimizer, 0) + 1
        if not event.scaler:
            self.step_calls[optimizer] = self.step_calls.get(optimizer, 0) + 1
        groups = self.groups(event.present)
        if event.present or event.closure:
            self.fed.add(optimizer)
        if not event.closure:
            yield StepFacts(event, self.steps[optimizer], groups, self.since[optimizer])
        for group in groups:
            for held in group.fresh:
                held.backward.step_index = self.steps[optimizer]
            for held in group.held:
                held.used_by = optimizer
                held.backward.stepped_params |= group.params
                held.backward.first_step_pass = held.backward.first_step_pass or self.newest
            group.edited = False
        self.since[optimizer] = SinceLastStep()

    def _scaler_step(self, event: events.ScalerStep) -> None:
        """A scaler has taken a step, or skipped it."""
        self.step_calls[event.optimizer] = self.step_calls.get(event.optimizer, 0) + 1
        if not event.taken:  # the gradients were inf or NaN; it has had its chance to use them
            event.refused = any(group.fresh for group in self.groups(event.params))
            for group in self.groups(event.params):
                for held in group.held:
                    held.backward.skipped_by_scaler = True
            self.since[event.optimizer] = SinceLastStep()

    def _unscale(self, event: events.Unscale) -> Iterable[Any]:
        """Gradients were divided by the loss scale."""
        for group in self.groups(event.params):
            for held in group.held:
                held.unscaled = True
        return ()

    def _clip(self, event: events.Clip) -> None:
        """Gradients are clipped."""
        event.groups = self.groups(event.params)

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

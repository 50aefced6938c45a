"""What is inside the gradients of parameters that have the same history, and what a step finds there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..events import Backward, Clear, Step


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
    """Has somebody written to ``.grad`` by hand since it was last cleared or used?"""
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
class Cleared:
    """A clearing of what no step had used."""

    clear: Clear
    lost: list[Backward]


@dataclass
class SinceLastStep:
    """What has happened to an optimizer's parameters since its last step."""

    backwards: list[Backward] = field(default_factory=list)
    clearings: list[Cleared] = field(default_factory=list)
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
    """Has somebody changed these gradients by hand?"""

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

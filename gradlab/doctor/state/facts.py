"""What rules hear: what is in the gradients of some parameters, and what a step found there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..events import Backward, Clear, Step


@dataclass(slots=True, eq=False)
class HeldPass:
    """What a backward pass has put into a ``.grad``, and what became of it."""

    backward: Backward
    used_by: int = -1
    """The optimizer whose step has used it last, -1 for none."""
    unscaled: bool = False


@dataclass(slots=True, eq=False)
class ParamGroupState:
    """Parameters whose gradients have the same contents."""

    params: int
    held: list[HeldPass] = field(default_factory=list)
    edited: bool = False
    """True if ``.grad`` was written to by hand since it was last cleared or used."""

    @property
    def fresh(self) -> list[HeldPass]:
        """What no step has used yet."""
        return [held for held in self.held if held.used_by < 0]

    def split_off(self, params: int) -> ParamGroupState:
        """Take some parameters out into a group of their own."""
        self.params &= ~params
        return replace(self, params=params, held=[replace(held) for held in self.held])

    def empty(self) -> None:
        """Nothing is inside any more."""
        self.held, self.edited = [], False


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


@dataclass(slots=True)
class StepFacts:
    """A step, with what it found in ``.grad``; it is made before the step is taken in."""

    step: Step
    number: int
    """Which step of this optimizer it is, counted from 1."""
    groups: list[ParamGroupState]
    since: SinceLastStep
    held: list[HeldPass]
    """All that is in the gradients, without repeats by parameter."""
    fresh: list[Backward]
    """The backward passes that no step has used yet, oldest first, each once."""
    edited: bool
    """True if these gradients were changed by hand."""


def unique_sorted(backwards: list[Backward]) -> list[Backward]:
    """Return backward passes without repeats, oldest first."""
    if len(backwards) < 2:
        return backwards
    return sorted({backward.number: backward for backward in backwards}.values(), key=lambda one: one.number)

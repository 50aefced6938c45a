"""Facts for the rules: the backward passes in the gradients of parameters, and the gradients at a step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..events import Backward, Clear, Step


@dataclass(slots=True, eq=False)
class GradPass:
    """A backward pass whose gradient is in a ``.grad``, and its use since."""

    backward: Backward
    used_by: int = -1
    """Optimizer whose step used it last, -1 for none."""
    unscaled: bool = False


@dataclass(slots=True, eq=False)
class ParamGroupState:
    """Parameters whose gradients have the same contents."""

    params: int
    passes: list[GradPass] = field(default_factory=list)
    edited: bool = False
    """True if ``.grad`` was written by hand since it was last cleared or used."""

    @property
    def fresh(self) -> list[GradPass]:
        """Passes that no step has used yet."""
        return [grad_pass for grad_pass in self.passes if grad_pass.used_by < 0]

    def split_off(self, params: int) -> ParamGroupState:
        """Move some parameters into a new group."""
        self.params &= ~params
        return replace(self, params=params, passes=[replace(grad_pass) for grad_pass in self.passes])

    def empty(self) -> None:
        """Remove all passes."""
        self.passes, self.edited = [], False


@dataclass
class SinceLastStep:
    """Events of an optimizer's parameters since its last step."""

    backwards: list[Backward] = field(default_factory=list)
    clearings: list[Clear] = field(default_factory=list)
    """Clearings of gradients that no step had used."""
    others: int = 0
    """Backward passes that added to none of its parameters."""
    called: int = 0
    """Parameters of the models that were called."""
    after: int = 0
    """Parameters of the models called, with gradients enabled, since the newest backward pass."""
    elsewhere: int = 0
    """Parameters that backward passes added to and no optimizer holds."""


@dataclass(frozen=True)
class MaybeCleared:
    """Zeros in gradients that were not read before: cleared, or zero from the start."""

    params: int


@dataclass(slots=True)
class StepFacts:
    """A step and the gradients it used, as they were before the step is applied to the state."""

    step: Step
    number: int
    """Index of this step among those of its optimizer, from 1."""
    groups: list[ParamGroupState]
    since: SinceLastStep
    passes: list[GradPass]
    """All passes in the gradients, without repeats by parameter."""
    fresh: list[Backward]
    """Backward passes that no step has used yet, oldest first, each once."""
    edited: bool
    """True if these gradients were edited by hand."""


def unique_sorted(backwards: list[Backward]) -> list[Backward]:
    """Return backward passes without repeats, oldest first."""
    if len(backwards) < 2:
        return backwards
    return sorted({backward.number: backward for backward in backwards}.values(), key=lambda backward: backward.number)

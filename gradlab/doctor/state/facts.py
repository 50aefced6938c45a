"""The facts about gradients and steps that rules receive, and the records in these facts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..events import Backward, Clear, Step


@dataclass(slots=True, eq=False)
class GradPass:
    """A backward pass that has added to a ``.grad``, and the optimizer whose step used the pass last."""

    backward: Backward
    used_by: int = -1
    """Index of the last optimizer whose step used the pass; -1 if no step has used it."""
    unscaled: bool = False


@dataclass(slots=True, eq=False)
class ParamGroupState:
    """Parameters whose gradients contain the same backward passes."""

    params: int
    passes: list[GradPass] = field(default_factory=list)
    edited: bool = False
    """True if the learner's code has changed ``.grad`` since it was last cleared or used."""

    @property
    def fresh(self) -> list[GradPass]:
        """The passes that no step has used yet."""
        return [grad_pass for grad_pass in self.passes if grad_pass.used_by < 0]

    def split_off(self, params: int) -> ParamGroupState:
        """Move ``params`` from this group into a new group with the same history, and return the new group."""
        self.params &= ~params
        return replace(self, params=params, passes=[replace(grad_pass) for grad_pass in self.passes])


@dataclass
class SinceLastStep:
    """Events since an optimizer's last step, which a GradScaler may have skipped."""

    backwards: list[Backward] = field(default_factory=list)
    clearings: list[Clear] = field(default_factory=list)
    """Clear events that affected the optimizer's parameters and removed passes that no step had used."""
    others: int = 0
    """Number of backward passes that added to none of the optimizer's parameters."""
    called: int = 0
    """Parameters of all models that the learner's code called."""
    after: int = 0
    """Parameters of the models that were called, with gradients enabled, since the newest backward pass."""
    elsewhere: int = 0
    """Parameters that backward passes added to and that no optimizer holds."""


@dataclass(frozen=True)
class MaybeCleared:
    """Parameters whose gradients are all zeros when first read, because of a clear or from the start."""

    params: int


@dataclass(slots=True)
class StepFacts:
    """A step and the gradients that it uses, before GradState is updated with the step."""

    step: Step
    number: int
    """Number of this step among the steps of its optimizer, from 1."""
    groups: list[ParamGroupState]
    since: SinceLastStep
    passes: list[GradPass]
    """All passes in the gradients; a pass has one entry for each group of parameters."""
    fresh: list[Backward]
    """The backward passes that no step has used yet, oldest first, without repeats."""
    edited: bool
    """True if the learner's code has changed these gradients."""


def unique_sorted(backwards: list[Backward]) -> list[Backward]:
    """Return backward passes without repeats, oldest first."""
    if len(backwards) < 2:
        return backwards
    return sorted({backward.number: backward for backward in backwards}.values(), key=lambda backward: backward.number)

"""What a rule is, and what all rules share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import EllipsisType
from typing import TYPE_CHECKING, Any, ClassVar

from ...formatting import batches_text
from ...gradients import union
from ..events import MANUAL_UPDATE
from ..finding import Cause, Code, Finding, Severity
from ..source.syntax import excerpt
from ..state.param_index import bit_positions

if TYPE_CHECKING:
    from ..event_log import EventLog
    from ..events import Backward, Clip, Forward, Mode, OptimizerMade, ScalerStep, ScalerUpdate, Schedule, Site
    from ..state.grad_groups import ParamGroupState, StepFacts
    from ..state.grad_state import GradState


Lookup = Callable[[], Cause | None]
"""Looks for the place to edit, in the learner's source."""

_MOST_LISTED = 32  # backward passes


class RuleContext:
    """What the rules share: what was recorded, the state, and the findings so far."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.findings: dict[tuple[str, Site], Finding] = {}
        self.seen: dict[tuple[str, Site], int] = {}
        """How many backward passes there had been when a finding was made or renewed last."""
        self.causes: dict[tuple[str, Site], Lookup | Cause | None] = {}
        """Of each finding the place to edit, or a function that looks for it."""
        self.state: GradState

    def look_for_causes(self) -> None:
        """Look for the place to edit of each finding, when the watch is over."""
        for key, finding in self.findings.items():
            cause = self.causes.get(key)
            known = replace(finding, cause=cause() if callable(cause) else cause)
            self.findings[key] = replace(known, excerpt=excerpt(known))

    def has_finding(self, code: Code) -> bool:
        """Is there a finding with this code?"""
        return any(known == code.name for known, _ in self.findings)

    def name(self, optimizer: int) -> str:
        """Return what to call an optimizer: by its name in the learner's code, or "Adam (the second optimizer)"."""
        if name := self.log.names.optimizer(optimizer):
            return name
        kind = self.state.optimizers[optimizer].kind if optimizer in self.state.optimizers else "the optimizer"
        words = ("first", "second", "third")
        if optimizer == MANUAL_UPDATE:
            return kind
        if len(self.state.optimizers) < 2 or optimizer >= len(words):
            return kind
        return f"{kind} (the {words[optimizer]} optimizer)"

    def full_name(self, optimizer: int) -> str:
        """Return the name of an optimizer and its kind: "optimizer_D (Adam)"."""
        name = self.log.names.optimizer(optimizer)
        return f"{name} ({self.state.optimizers[optimizer].kind})" if name else self.name(optimizer)

    def variable(self, optimizer: int) -> str:
        """Return the learner's variable for an optimizer, for a line of code; "optimizer" if it is not known."""
        return self.log.names.optimizer(optimizer) or "optimizer"

    def param_names(self, params: int, most: int = 3) -> str:
        """Return the names of some parameters, as "critic.0.weight, critic.0.bias, ..."; else their shapes."""
        numbers = bit_positions(params)
        names = [name for number in numbers if (name := self.log.names.param(number))]
        if not names:
            tensors = [self.log.index.param(number) for number in numbers[:most]]
            names = [f"one of shape {tuple(param.shape)}" for param in tensors if param is not None]
        if not names:  # the model is gone with the function that made it
            return ""
        return ", ".join(names[:most]) + (", ..." if len(numbers) > most else "")

    def all_names(self, params: int) -> list[str]:
        """Return all names that some parameters have, in whichever function."""
        return [name for number in bit_positions(params) for name in self.log.names.params.get(number, [])]

    def part_name(self, params: int) -> str:
        """Return the name of the part of a model that holds some parameters, such as "critic" or "model.head"."""
        names = [name.split(".") for number in bit_positions(params) if (name := self.log.names.param(number))]
        if not names or len(names) < params.bit_count():
            return ""
        common = names[0]
        for parts in names:
            common = [one for one, other in zip(common, parts, strict=False) if one == other]
        return ".".join(common if len(names) > 1 else common[:-1] or common)


class Rule:
    """A rule; it overrides the facts that it wants to hear of. The codes that it can report are class attributes."""

    codes: ClassVar[frozenset[Code]] = frozenset()

    def __init_subclass__(cls) -> None:
        cls.codes = frozenset(value for value in vars(cls).values() if isinstance(value, Code))

    def __init__(self, context: RuleContext) -> None:
        self.context = context

    def report(
        self,
        code: Code,
        severity: Severity,
        site: Site,
        message: str,
        evidence: str,
        fix: str,
        cause: Lookup | Cause | EllipsisType | None = ...,
    ) -> None:
        """Note a finding; one that is known at this place gets the newer evidence.

        cause: the place to edit, or a function that looks for it once, at the end of the watch; left out, it is the
        line of ``site`` itself; None if it is not known.
        """
        if code not in self.codes:
            own = ", ".join(sorted(one.name for one in self.codes)) or "none"
            raise ValueError(f"{type(self).__name__} reports {code.name}; the codes that it declares: {own}")
        file, line = site
        context, name = self.context, code.name
        context.seen[name, site] = context.log.backwards
        context.findings[name, site] = Finding(name, severity, message, evidence, file, line, fix, code.lesson)
        context.causes[name, site] = (Cause(*site) if line else None) if cause is ... else cause

    def backward(self, backward: Backward) -> None:
        """A backward pass begins."""

    def on_nonzero_grad(self, backward: Backward, params: int) -> None:
        """A backward pass found gradients on these parameters that are not zeros."""

    def on_maybe_cleared(self, params: int) -> None:
        """Zeros were found in gradients that were not looked at before: cleared, or never anything else."""

    def on_accumulate(self, backward: Backward, groups: list[ParamGroupState]) -> None:
        """A backward pass adds to the gradients of these groups, which are as they were before it."""

    def step(self, facts: StepFacts) -> None:
        """An optimizer takes a step, without a closure."""

    def scaler_step(self, event: ScalerStep, groups: list[ParamGroupState]) -> None:
        """A scaler has taken a step, or skipped it."""

    def scaler_update(self, event: ScalerUpdate) -> None:
        """A scaler has looked at how the steps went."""

    def clip(self, event: Clip, groups: list[ParamGroupState]) -> None:
        """Gradients are clipped."""

    def made(self, event: OptimizerMade) -> None:
        """An optimizer was made or is seen for the first time."""

    def schedule(self, event: Schedule) -> None:
        """A scheduler takes a step."""

    def mode(self, event: Mode) -> None:
        """A module was put into training or evaluation mode."""

    def forward(self, event: Forward) -> None:
        """The learner's code calls a module."""

    def end(self, *, normal: bool) -> None:
        """The watch is over; ``normal`` is False if an exception ended it."""


def numbered(backwards: list[Any]) -> str:
    """Write backward passes as words: "batch 3", "batches 3 to 6", "batches 3, 5", of very many "batches 1, …, 191"."""
    spans = union((one.number, one.number) for one in backwards)
    if len(spans) > 1 and len(backwards) > _MOST_LISTED:  # the state forgets some in the middle: no gap may be claimed
        return f"batches {spans[0][0]:,}, …, {spans[-1][1]:,}"
    return batches_text(spans)

"""The base class of rules, and their shared context."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from ...formatting import batches_text, number_of
from ..events import (
    NO_SITE,
    Added,
    Backward,
    Clip,
    Forward,
    Mode,
    OptimizerMade,
    ScalerStep,
    ScalerUpdate,
    Schedule,
    Site,
    bit_positions,
    union_bits,
)
from ..finding import Cause, Code, Edit, Finding
from ..source.syntax import edited, excerpt
from ..state.facts import MaybeCleared, StepFacts
from ..state.grad_state import GradState

if TYPE_CHECKING:
    from ..listeners.event_log import EventLog


Lookup = Callable[[], Edit | Cause | None]
"""Looks for the place to edit, in the learner's source."""

_MOST_LISTED = 32  # backward passes


class RuleContext:
    """The shared context of rules: the record, the state, and the findings so far."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.findings: dict[tuple[str, Site], Finding] = {}
        self.newest: dict[tuple[str, Site], int] = {}
        """The number of backward passes when a finding was last made or renewed."""
        self.edits: dict[tuple[str, Site], Lookup | Edit | Cause | None] = {}
        """Of each finding the place to edit, or a function that looks for it."""
        self.lost_places: list[str] = []
        """Findings whose place could not be looked for, each with what went wrong."""
        self.state = GradState()

    def look_for_edits(self) -> None:
        """Look for the place to edit of each finding, when the watch is over.

        A line of Python is given only if the file with it is Python, too; else it is the code's sentence. A failure of
        ours in here costs a place, and not the verdict.
        """
        for key, finding in self.findings.items():
            edit = self.edits.get(key)
            try:
                edit = edit() if callable(edit) else edit
            except Exception as failure:
                self.lost_places.append(f"{finding.code}: {type(failure).__name__}: {failure}")
                edit = None
            if isinstance(edit, Edit):
                finding = replace(finding, cause=edit.cause)
                if edited(edit.cause, edit.line) is not None:
                    finding = replace(finding, fix=edit.line, fix_is_line=True)
            elif edit is not None:
                finding = replace(finding, cause=edit)
            self.findings[key] = replace(finding, excerpt=excerpt(finding))

    def has_finding(self, code: Code) -> bool:
        """Return whether there is a finding with this code."""
        return any(name == code.name for name, _ in self.findings)

    def name(self, optimizer: int) -> str:
        """Return an optimizer's name in the learner's code, or "Adam (the second optimizer)"."""
        if name := self.log.names.optimizer(optimizer):
            return name
        kind = self.state.optimizers[optimizer].kind if optimizer in self.state.optimizers else "the optimizer"
        ordinals = ("first", "second", "third")
        several = len(self.state.optimizers) > 1 and optimizer < len(ordinals)
        return f"{kind} (the {ordinals[optimizer]} optimizer)" if several else kind

    def names(self, optimizer: int) -> list[str]:
        """Return all names that an optimizer has in the learner's code."""
        return self.log.names.optimizers.get(optimizer, [])

    def full_name(self, optimizer: int) -> str:
        """Return the name of an optimizer and its kind: "optimizer_D (Adam)"."""
        name = self.log.names.optimizer(optimizer)
        return f"{name} ({self.state.optimizers[optimizer].kind})" if name else self.name(optimizer)

    def variable(self, optimizer: int) -> str:
        """Return the learner's variable for an optimizer, for a line of code; "optimizer" if it is not known."""
        return self.log.names.optimizer(optimizer) or "optimizer"

    def made_at(self, optimizer: int, otherwise: Site) -> Site:
        """Return the line that made an optimizer or, if it is older than the watch, another one."""
        created = self.state.optimizers[optimizer].site
        return created if created != NO_SITE else otherwise

    def never_moved(self, params: int) -> int:
        """Return those of some parameters that no optimizer holds and nothing has written to."""
        left = params & ~self.state.covered
        return left & ~self.log.index.weights_ever_written(left)

    def whole_models(self, params: int) -> int:
        """Return those of some parameters that are all that a model has."""
        return union_bits(model.params for model in self.log.models.all() if not model.params & ~params)

    def param_names(self, params: int, most: int = 3) -> str:
        """Return the names of some parameters, as "critic[0].weight, critic[0].bias, ..."; else their shapes."""
        numbers = bit_positions(params)
        names = [name for number in numbers if (name := self.log.names.param(number))]
        names = names or [f"one of shape {tuple(param.shape)}" for _, param in self.log.index.alive(params)]
        if not names:  # the model is gone with the function that made it
            return ""
        return ", ".join(names[:most]) + (", ..." if len(numbers) > most else "")

    def listed(self, params: int) -> str:
        """Return the names of some parameters for the end of a sentence: ": critic[0].weight, ..."; "" without any."""
        names = self.param_names(params)
        return f": {names}" if names else ""

    def all_names(self, params: int) -> list[str]:
        """Return all names that some parameters have, in whichever function."""
        return [name for number in bit_positions(params) for name in self.log.names.params.get(number, [])]

    def part_name(self, params: int) -> str:
        """Return the name of the part of a model that holds these parameters and no other, such as "model.head"."""
        names = [re.findall(r"\.?[^.\[]+|\[.*?\]", self.log.names.param(number)) for number in bit_positions(params)]
        common = names[0] if names else []
        for parts in names:
            common = [part for part, other in zip(common, parts, strict=False) if part == other]
        if len(names) == 1:
            common = common[:-1] or common
        return "".join(common)

    def module_name(self, params: int) -> str:
        """Return the name of a module if it has exactly these parameters; "" if none is known."""
        name, names = self.part_name(params), self.all_names(params)
        others = self.all_names(((1 << len(self.log.index)) - 1) & ~params)
        whole = any(model.params & params == params for model in self.log.models.all())
        inside = re.compile(rf"{re.escape(name)}[.\[]")
        unique = whole and any(map(inside.match, names)) and not any(map(inside.match, others))
        return name if unique else ""


FACTS: dict[str, type] = {
    "backward": Backward,  # a backward pass begins
    "accumulate": Added,  # a backward pass adds to gradients, whose groups are as they were before it
    "maybe_cleared": MaybeCleared,
    "step": StepFacts,  # an optimizer takes a step, without a closure
    "scaler_step": ScalerStep,  # a scaler has taken a step, or skipped it
    "scaler_update": ScalerUpdate,
    "clip": Clip,  # gradients are clipped
    "made": OptimizerMade,  # an optimizer was made, or is seen for the first time
    "schedule": Schedule,  # a scheduler takes a step
    "mode": Mode,  # a module was put into training or evaluation mode
    "forward": Forward,  # the learner's code calls a module
}
"""The facts that a rule can receive, by the name of its method."""


class Rule:
    """A rule: it has a method of FACTS for each fact that it wants to hear; its codes are class attributes."""

    codes: ClassVar[frozenset[Code]] = frozenset()

    def __init_subclass__(cls) -> None:
        cls.codes = frozenset(value for value in vars(cls).values() if isinstance(value, Code))

    def __init__(self, context: RuleContext) -> None:
        self.context = context
        self.times: Counter[Any] = Counter()
        self._begin()

    def _begin(self) -> None:
        """The watch begins: a rule makes here what it remembers, beside ``times``."""

    def count(self, what: Any) -> int:
        """Return the number of times that something was seen, this time included."""
        self.times[what] += 1
        return self.times[what]

    def end(self, *, normal: bool) -> None:
        """The watch is over; ``normal`` is False if an exception ended it."""

    def report(
        self,
        code: Code,
        site: Site,
        proof: str,
        edit: Lookup | Edit | Cause | None = None,
        *,
        of: int = -1,
        **fields: Any,
    ) -> None:
        """Note a finding; one that is known at this place gets what was seen last.

        edit: the place to edit, with the line of Python that belongs there if it is one line; or a function that looks
        for it once, at the end of the watch; None where it is not sure. of: the optimizer that the code's message and
        fix call {optimizer}. fields: the other fields of their sentences.
        """
        if code.name not in (names := sorted(each.name for each in self.codes)):
            raise ValueError(f"{type(self).__name__} reports {code.name}; it declares: {', '.join(names)}")
        context, key = self.context, (code.name, site)
        fields = {"optimizer": context.variable(of)} | fields
        message, fix = code.message.format(**fields), code.fix.format(**fields)
        context.newest[key] = context.log.passes.count
        context.findings[key] = Finding(code.name, code.severity, message, proof, *site, fix, code.lesson)
        context.edits[key] = edit


def how_many(params: int) -> str:
    """Write how many parameters are in a set: "1 parameter"."""
    return number_of(params.bit_count(), "parameter")


def numbered(backwards: list[Any]) -> str:
    """Write backward passes as words: "batch 3", "batches 3 to 6", "batches 3, 5", of very many "batches 1, …, 191"."""
    numbers = {backward.number for backward in backwards}
    firsts, lasts = (sorted(number for number in numbers if number + step not in numbers) for step in (-1, 1))
    spans = [*zip(firsts, lasts, strict=True)]
    if len(spans) > 1 and len(backwards) > _MOST_LISTED:  # the state forgets some in the middle: no gap may be claimed
        return f"batches {spans[0][0]:,}, …, {spans[-1][1]:,}"
    return batches_text(spans)

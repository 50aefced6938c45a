"""The base class of rules, and the context that all rules share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar

from ...formatting import batches_text, number_of
from ..events import (
    NO_SITE,
    Added,
    Backward,
    Clip,
    Forward,
    Mode,
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


EditLike = Edit | Cause | None | Callable[[], Edit | Cause | None]
"""An edit, a Cause if only its location is known, None if neither is, or a function that returns one of these later."""

_MOST_LISTED = 32  # backward passes; if more have gaps between them, only the first and last numbers are shown


class RuleContext:
    """The context that all rules share: the event log, the state of the gradients, and the findings so far."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.findings: dict[tuple[str, Site], Finding] = {}
        self.newest: dict[tuple[str, Site], int] = {}
        """Code and site of a finding -> number of backward passes when it was last reported."""
        self.edits: dict[tuple[str, Site], EditLike] = {}
        """Code and site of a finding -> the ``edit`` passed to ``Rule.report``."""
        self.lost_places: list[str] = []
        """Messages of errors in the search for locations to edit, each with the code of its finding."""
        self.state = GradState()

    def look_for_edits(self) -> None:
        """Add the location to edit and the excerpt to each finding, at the end of the watch.

        A line of Python replaces the finding's fix only if the file parses with it. If a search raises an error, its
        message is added to ``lost_places``, and the finding gets no location.
        """
        for key, finding in self.findings.items():
            edit = self.edits.get(key)
            try:
                edit = edit() if callable(edit) else edit
            except Exception as failure:
                self.lost_places.append(f"{finding.code}: {type(failure).__name__}: {failure}")
                edit = None
            finding = replace(finding, cause=edit.cause if isinstance(edit, Edit) else edit)
            if isinstance(edit, Edit) and edited(edit.cause, edit.line) is not None:
                finding = replace(finding, fix=edit.line, fix_is_line=True)
            self.findings[key] = replace(finding, excerpt=excerpt(finding))

    def has_finding(self, code: Code) -> bool:
        """Return whether there is a finding with this code."""
        return any(name == code.name for name, _ in self.findings)

    def name(self, optimizer: int) -> str:
        """Return an optimizer's name in the learner's code; if it has none, "Adam" or "Adam (the second optimizer)"."""
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
        """Return an optimizer's name and class: "optimizer_D (Adam)". Without a name, return ``name(optimizer)``."""
        name = self.log.names.optimizer(optimizer)
        return f"{name} ({self.state.optimizers[optimizer].kind})" if name else self.name(optimizer)

    def variable(self, optimizer: int) -> str:
        """Return the learner's name for an optimizer, for use in code; "optimizer" if the name is unknown."""
        return self.log.names.optimizer(optimizer) or "optimizer"

    def made_at(self, optimizer: int, otherwise: Site) -> Site:
        """Return the line that created an optimizer, or ``otherwise`` if it was created before the watch."""
        created = self.state.optimizers[optimizer].site
        return created if created != NO_SITE else otherwise

    def never_moved(self, params: int) -> int:
        """Return the subset of ``params`` that no optimizer holds and nothing has written to."""
        left = params & ~self.state.covered
        return left & ~self.log.index.weights_ever_written(left)

    def whole_models(self, params: int) -> int:
        """Return the parameters of all models whose parameters are a subset of ``params``."""
        return union_bits(model.params for model in self.log.models.all() if not model.params & ~params)

    def param_names(self, params: int, most: int = 3) -> str:
        """Return up to ``most`` names, "head.weight, ...". Without names, return shapes, or "" for freed parameters."""
        numbers = bit_positions(params)
        names = [name for number in numbers if (name := self.log.names.param(number))]
        names = names or [f"one of shape {tuple(param.shape)}" for _, param in self.log.index.alive(params)]
        if not names:  # the model was freed when the function that made it returned
            return ""
        return ", ".join(names[:most]) + (", ..." if len(numbers) > most else "")

    def listed(self, params: int) -> str:
        """Return parameter names for the end of a sentence: ": head.weight, ..."; "" if ``param_names()`` is empty."""
        names = self.param_names(params)
        return f": {names}" if names else ""

    def all_names(self, params: int) -> list[str]:
        """Return all names that the parameters in ``params`` have in the learner's functions."""
        return [name for number in bit_positions(params) for name in self.log.names.params.get(number, [])]

    def part_name(self, params: int) -> str:
        """Return the common prefix of the parameters' names, such as "model.head"; "" if there is none."""
        names = [re.findall(r"\.?[^.\[]+|\[.*?\]", self.log.names.param(number)) for number in bit_positions(params)]
        common = [parts[0] for parts in takewhile(lambda parts: len({*parts}) == 1, zip(*names, strict=False))]
        if len(names) == 1:
            common = common[:-1] or common
        return "".join(common)

    def module_name(self, params: int) -> str:
        """Return the name of the module that has exactly these parameters; "" if no such module is known."""
        name, names = self.part_name(params), self.all_names(params)
        others = self.all_names(((1 << len(self.log.index)) - 1) & ~params)
        whole = any(model.params & params == params for model in self.log.models.all())
        inside = re.compile(rf"{re.escape(name)}[.\[]")
        unique = whole and any(map(inside.match, names)) and not any(map(inside.match, others))
        return name if unique else ""


FACTS: dict[str, type] = {
    "backward": Backward,  # a backward pass begins
    "accumulate": Added,  # a backward pass has added to gradients; ``groups`` holds their state before it
    "maybe_cleared": MaybeCleared,
    "step": StepFacts,  # an optimizer steps without a closure
    "scaler_step": ScalerStep,  # a scaler has taken or skipped a step
    "scaler_update": ScalerUpdate,
    "clip": Clip,  # gradients are clipped
    "schedule": Schedule,  # a scheduler steps
    "mode": Mode,  # a module was put into training or evaluation mode
    "forward": Forward,  # the learner's code calls a module
}
"""Name of a rule's method -> class of the facts that it receives."""


class Rule:
    """The base class of rules: a subclass has codes as attributes, and methods named in FACTS that receive facts."""

    codes: ClassVar[frozenset[Code]] = frozenset()

    def __init_subclass__(cls) -> None:
        cls.codes = frozenset(value for value in vars(cls).values() if isinstance(value, Code))

    def __init__(self, context: RuleContext) -> None:
        self.context, self.log, self.state = context, context.log, context.state
        self.times: Counter[Any] = Counter()
        self._begin()

    def _begin(self) -> None:
        """Initialize the attributes of a subclass."""

    def count(self, what: Any) -> int:
        """Count one more occurrence of ``what``, and return the number of occurrences so far."""
        self.times[what] += 1
        return self.times[what]

    def end(self, *, normal: bool) -> None:
        """Judge the whole watch at its end; ``normal`` is False if an exception or a limit ended it early."""

    def report(self, code: Code, site: Site, proof: str, edit: EditLike = None, *, of: int = -1, **fields: Any) -> None:
        """Record a finding; it replaces an earlier finding with the same code and site.

        A function as ``edit`` is called at the end of the watch. ``of`` is the optimizer named by {optimizer} in the
        code's message and fix; ``fields`` has the values of all other {fields} in them.
        """
        if code.name not in (names := sorted(each.name for each in self.codes)):
            raise ValueError(f"{type(self).__name__}: code must be one of {', '.join(names)}, got {code.name}")
        context, key = self.context, (code.name, site)
        fields = {"optimizer": context.variable(of)} | fields
        message, fix = code.message.format(**fields), code.fix.format(**fields)
        context.newest[key] = context.log.passes.count
        context.findings[key] = Finding(code.name, code.severity, message, proof, *site, fix, code.lesson)
        context.edits[key] = edit


def how_many(params: int) -> str:
    """Return the number of parameters in a set, with its noun: "1 parameter"."""
    return number_of(params.bit_count(), "parameter")


def numbered(backwards: list[Any]) -> str:
    """Return the numbers of passes: "batches 3 to 6" or "batches 3, 5"; for many with gaps, "batches 1, …, 191"."""
    numbers = {backward.number for backward in backwards}
    firsts, lasts = (sorted(number for number in numbers if number + step not in numbers) for step in (-1, 1))
    spans = [*zip(firsts, lasts, strict=True)]
    if len(spans) > 1 and len(backwards) > _MOST_LISTED:  # GradState drops passes in the middle: gaps are uncertain
        return f"batches {spans[0][0]:,}, …, {spans[-1][1]:,}"
    return batches_text(spans)

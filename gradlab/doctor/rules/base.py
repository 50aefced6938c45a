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

_MOST_LISTED = 32  # largest number of passes with gaps to list; a longer list gives only the first and last number


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
        """Add a source excerpt and, if it is found, the location to edit to each finding, at the end of the watch.

        A line of Python replaces the finding's fix only if the edited file can be parsed. If the search for an edit
        raises an error, the error's message is added to ``lost_places``, and the finding gets no location.
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
        """Return an optimizer's name in the learner's code or, without one, text like "Adam (the second optimizer)"."""
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
        """Return an optimizer's name and class, as in "optimizer_D (Adam)", or ``name(optimizer)`` if it is unnamed."""
        name = self.log.names.optimizer(optimizer)
        return f"{name} ({self.state.optimizers[optimizer].kind})" if name else self.name(optimizer)

    def variable(self, optimizer: int) -> str:
        """Return the learner's name for an optimizer, for use in code, or "optimizer" if the name is unknown."""
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
        """Return the names, or else the shapes, of up to ``most`` parameters as text, or "" if none exists any more."""
        numbers = bit_positions(params)
        names = [name for number in numbers if (name := self.log.names.param(number))]
        names = names or [f"one of shape {tuple(param.shape)}" for _, param in self.log.index.alive(params)]
        if not names:  # the parameters are freed, for example because the function that made the model returned
            return ""
        return ", ".join(names[:most]) + (", ..." if len(numbers) > most else "")

    def listed(self, params: int) -> str:
        """Return ": " and ``param_names(params)`` as the end of a sentence, or "" if no parameter exists any more."""
        names = self.param_names(params)
        return f": {names}" if names else ""

    def all_names(self, params: int) -> list[str]:
        """Return all names that the parameters in ``params`` have in the learner's functions."""
        return [name for number in bit_positions(params) for name in self.log.names.params.get(number, [])]

    def part_name(self, params: int) -> str:
        """Return the common prefix of the parameters' names, such as "model.head", or "" if there is none."""
        names = [re.findall(r"\.?[^.\[]+|\[.*?\]", self.log.names.param(number)) for number in bit_positions(params)]
        common = [parts[0] for parts in takewhile(lambda parts: len({*parts}) == 1, zip(*names, strict=False))]
        if len(names) == 1:
            common = common[:-1] or common
        return "".join(common)

    def module_name(self, params: int) -> str:
        """Return the name of the module whose parameters are exactly ``params``, or "" if no such module is known."""
        name, names = self.part_name(params), self.all_names(params)
        others = self.all_names(((1 << len(self.log.index)) - 1) & ~params)
        whole = any(model.params & params == params for model in self.log.models.all())
        inside = re.compile(rf"{re.escape(name)}[.\[]")
        unique = whole and any(map(inside.match, names)) and not any(map(inside.match, others))
        return name if unique else ""


FACTS: dict[str, type] = {
    "backward": Backward,  # a backward pass begins
    "accumulate": Added,  # a backward pass has added to gradients, whose state before the pass is in ``groups``
    "maybe_cleared": MaybeCleared,
    "step": StepFacts,  # an optimizer steps, and no closure of the step changes gradients
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
        """Judge the loop at the end of the watch. ``normal`` is False if an error or a limit ended the watch early."""

    def report(self, code: Code, site: Site, proof: str, edit: EditLike = None, *, of: int = -1, **fields: Any) -> None:
        """Record a finding in place of any earlier finding with the same code and site.

        If ``edit`` is a function, it is called at the end of the watch. In the message and the fix of ``code``, the
        name of optimizer number ``of`` replaces {optimizer}, and ``fields`` has the values of all other {fields}.
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
    """Return the number of parameters in the set ``params`` as text, such as "1 parameter" or "2 parameters"."""
    return number_of(params.bit_count(), "parameter")


def numbered(backwards: list[Any]) -> str:
    """Return the numbers of passes as text, such as "batches 3, 5 to 7" or, for many with gaps, "batches 1, …, 191"."""
    numbers = {backward.number for backward in backwards}
    firsts, lasts = (sorted(number for number in numbers if number + step not in numbers) for step in (-1, 1))
    spans = [*zip(firsts, lasts, strict=True)]
    if len(spans) > 1 and len(backwards) > _MOST_LISTED:  # GradState drops some passes, so the gaps are uncertain
        return f"batches {spans[0][0]:,}, …, {spans[-1][1]:,}"
    return batches_text(spans)

"""Rules for steps that apply gradients a second time, or gradients left over from another loss."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import partial
from typing import Any

from ..events import MANUAL_UPDATE, Backward, Site, union_bits
from ..finding import Cause, Code, Edit
from ..source.calls import mentions_grad, name_in_scope, replaced, statement_at, without_brackets
from ..source.syntax import function_around, own_nodes
from ..state.facts import MaybeCleared, ParamGroupState, StepFacts
from .base import Rule, RuleContext, numbered


def clear_above(context: RuleContext, optimizer: int, site: Site) -> Edit | Cause | None:
    """Return the edit that inserts ``zero_grad()`` above the statement at ``site``, or None if that is not possible.

    If the optimizer has no name in the scope of ``site``, return only the location.
    """
    statement = statement_at(site)
    if statement is None:
        return None
    cause, name = Cause(site[0], statement.lineno, insert="above"), name_in_scope(context.names(optimizer), site)
    return Edit(cause, f"{name}.zero_grad()") if name else cause


def clear_below(context: RuleContext, optimizer: int, site: Site) -> Edit | None:
    """Return the edit that inserts ``zero_grad()`` below a step, or None if none fits or if ``.grad`` is used later."""
    statement, scope = statement_at(site), function_around(site)
    if not isinstance(statement, ast.Expr):
        return None
    line = statement.end_lineno or statement.lineno
    below = [node for node in own_nodes(scope) if isinstance(node, ast.Attribute) and node.lineno > line]
    name = name_in_scope(context.names(optimizer), site)
    if not name or any(map(mentions_grad, below)):
        return None
    return Edit(Cause(site[0], line, insert="below"), f"{name}.zero_grad()")


class MissingZeroGrad(Rule):
    """A step applies new batches together with batches that the same optimizer has already applied."""

    MISSING_ZERO_GRAD = Code(
        "missing-zero-grad",
        "03_forgetting_zero_grad",
        "How to recognise it",
        message="`.grad` is not cleared between updates, so every step applies the gradients of earlier batches again.",
        fix="Clear the gradients once for each update, before its first backward(): {optimizer}.zero_grad().",
    )
    IN_CLOSURE = MISSING_ZERO_GRAD.with_(
        message="The closure does not clear `.grad`, so each pass adds to the gradients of earlier ones. "
        "step(closure) may call the closure several times and moves the weights between the calls.",
        fix="Call {optimizer}.zero_grad() inside the closure, before its backward().",
    )
    BY_HAND = MISSING_ZERO_GRAD.with_(fix="Set each `.grad` to None once for each update, before its first backward().")

    def _begin(self) -> None:
        self._real = 0  # parameters with a nonzero gradient at the start of some backward pass
        self._accumulates: set[int] = set()

    def backward(self, backward: Any) -> None:
        """Record the parameters whose gradients were measured as nonzero, and no longer request their values."""
        self._real |= backward.nonzero
        self.log.index.wanted_values &= ~backward.nonzero

    def maybe_cleared(self, fact: MaybeCleared) -> None:
        """Request the gradients of ``fact.params`` after each pass, to tell cleared gradients from computed zeros."""
        self.log.index.wanted_values_after |= fact.params

    def accumulate(self, added: Any) -> None:
        """Check whether a pass in a closure adds to gradients with which the optimizer has already moved weights."""
        optimizer = added.backward.closure_of
        if optimizer >= 0:
            now = self.state.steps.get(optimizer, 0)
            latest = now if added.backward.moved else now - 1
            again = [use for use in _used_by(optimizer, added.groups) if use[1].step_index <= latest]
            self._judge(optimizer, self.state.last[optimizer].step.site, now, again, [added.backward])

    def step(self, facts: StepFacts) -> None:
        optimizer = facts.step.optimizer
        used = _used_by(optimizer, [group for group in facts.groups if group.fresh])
        self._judge(optimizer, facts.step.site, facts.number, used, facts.fresh)

    def _judge(self, optimizer: int, site: Site, number: int, used: list[Any], fresh: list[Backward]) -> None:
        """Report an update that applies passes again, from the optimizer's second such update on.

        If none of the gradients of these passes is known to be nonzero, request the values of the gradients instead.
        """
        params, again = union_bits(some for some, _ in used), [backward for _, backward in used]
        if not params & self._real:
            self.log.index.wanted_values |= params
            return
        if len({backward.site for backward in fresh}) < len(fresh):
            self._accumulates.add(optimizer)
        if (times := self.count(optimizer)) >= 2:
            code = self.BY_HAND if optimizer == MANUAL_UPDATE else self.MISSING_ZERO_GRAD
            code = self.IN_CLOSURE if fresh[-1].closure_of == optimizer else code
            name = self.context.name(optimizer)
            proof = f"update {number} of {name} applied {numbered(again)} again; {times} updates did so"
            self.report(code, site, proof, partial(self._edit, optimizer, site, again, fresh), of=optimizer)

    def _edit(self, optimizer: int, step: Site, again: list[Backward], fresh: list[Backward]) -> Edit | Cause | None:
        """Return the edit that adds parentheses to ``zero_grad``, steps another optimizer, or inserts ``zero_grad()``.

        The call is inserted above the first pass, or below the step if an update has several passes from one line.
        """
        context, its_params = self.context, self.state.params_of[optimizer]
        names = {part for name in context.all_names(its_params) for part in name.split(".")[:-1]}
        names |= set(context.names(optimizer))
        if names and (named := without_brackets(context.log.files(), "zero_grad", names)):
            cause = named.cause if isinstance(named, Edit) else named
            return replaced((cause.file, cause.line), ".zero_grad", ".zero_grad()") or cause
        if wrong := self._wrong_step(optimizer, step, again, fresh[-1]):
            return wrong
        alone = [backward for backward in fresh if not backward.added & ~its_params] or fresh
        above = None if optimizer in self._accumulates else clear_above(context, optimizer, alone[0].site)
        return above if isinstance(above, Edit) else clear_below(context, optimizer, step) or above

    def _wrong_step(self, optimizer: int, step: Site, again: list[Backward], newest: Backward) -> Edit | None:
        """Return the edit that steps the only optimizer that never steps and gets the newest gradients, or None."""
        owners = [
            number
            for number, params in self.state.params_of.items()
            if params and not self.state.step_calls.get(number) and not params & ~newest.added
            if not any(backward.added & params for backward in again)
        ]
        if len(owners) != 1:
            return None
        here, wanted = (name_in_scope(self.context.names(number), step) for number in (optimizer, owners[0]))
        return replaced(step, f"{here}.step", f"{wanted}.step") if here and wanted else None


def _used_by(optimizer: int, groups: Iterable[ParamGroupState]) -> list[tuple[int, Backward]]:
    """Return (parameters, pass) for each pass in unedited groups that a step of ``optimizer`` has already used."""
    return [
        (group.params, entry.backward)
        for group in groups
        for entry in group.passes
        if entry.used_by == optimizer and not group.edited
    ]


class DoubleStep(Rule):
    """An optimizer takes two steps on the same gradients."""

    DOUBLE_STEP = Code(
        "double-step",
        "06_optimizer_step",
        "Who moves the weights",
        message="Two steps are taken on one gradient: the second applies the same batches once more.",
        fix="Remove one of the two step() calls.",
    )

    def step(self, facts: StepFacts) -> None:
        optimizer, entries, site = facts.step.optimizer, facts.passes, facts.step.site
        if not entries or facts.edited or facts.step.moved or self.state.optimizers[optimizer].is_custom_class:
            return
        if facts.since.backwards or facts.since.others:  # EmptyStep reports passes that did not add to these parameters
            return
        if all(entry.used_by == optimizer for entry in entries) and (times := self.count(site)) >= 2:
            again = numbered([entry.backward for entry in entries])
            proof = f"step {facts.number} of {self.context.name(optimizer)} found nothing but {again}, applied by the "
            self.report(self.DOUBLE_STEP, site, f"{proof}step before; {times} times", Cause(*site))


class ForeignGradients(Rule):
    """A step also applies gradients that the loss of another optimizer has left in the parameters."""

    FOREIGN_GRADIENTS_IN_STEP = Code(
        "foreign-gradients-in-step",
        "04_zero_grad",
        "Two optimizers in a GAN",
        message="This step also applies the gradients that another optimizer's loss has left in these parameters.",
        fix="Call {optimizer}.zero_grad() right before the first backward() of its own loss.",
    )

    def step(self, facts: StepFacts) -> None:
        """Check a step for passes from other lines that another optimizer had used before the newest pass began."""
        optimizer, site, fresh = facts.step.optimizer, facts.step.site, facts.fresh
        if not fresh or facts.edited or any(entry.used_by == optimizer for entry in facts.passes):
            return  # MissingZeroGrad reports passes that this optimizer has used before
        newest = [entry.backward for entry in facts.passes if entry.used_by < 0][-1]
        alone = self.state.lines[optimizer] | {newest.site}
        foreign = [
            entry.backward
            for entry in facts.passes
            if entry.backward.stepped_params & ~facts.step.params
            and entry.backward.stepped_params & facts.step.params == 0
            and entry.backward.first_step_pass < newest.number
            and entry.backward.site not in alone
        ]
        if foreign and (times := self.count(site)) >= 2:
            fresh = [backward for backward in fresh if backward not in foreign]
            once = len({backward.site for backward in fresh}) == len(fresh)
            proof = f"step {facts.number} of {self.context.name(optimizer)} applied {numbered(foreign)} of the loss in "
            proof += f"line {foreign[-1].site[1]}, which another optimizer had already stepped on; {times} times"
            edit = partial(clear_above, self.context, optimizer, fresh[0].site) if once else None
            self.report(self.FOREIGN_GRADIENTS_IN_STEP, site, proof, edit, of=optimizer)

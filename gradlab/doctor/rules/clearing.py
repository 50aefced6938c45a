"""Steps that use gradients which are not theirs to use: used before, or left by somebody else."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from ..events import Site
from ..finding import Cause, Code
from ..source.calls import never_reached, without_brackets
from ..source.syntax import function_around
from ..state.grad_groups import MaybeCleared, StepFacts
from .base import Rule, RuleContext, numbered


class MissingZeroGrad(Rule):
    """A step applies batches again that a step of the same optimizer has applied before, beside a new one."""

    MISSING_ZERO_GRAD = Code("missing-zero-grad", "03_forgetting_zero_grad", "How to recognise it")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._times: Counter[int] = Counter()
        self._real = 0  # parameters whose gradients were seen not to be zeros when a backward added to them

    def backward(self, backward: Any) -> None:
        """Old gradients that are not zeros: nobody has cleared them behind our back."""
        self._real |= backward.nonzero
        self.context.log.index.wanted_values &= ~backward.nonzero

    def maybe_cleared(self, fact: MaybeCleared) -> None:
        """Have those looked at from now on: other rules want to know whether anything was cleared."""
        self.context.log.index.wanted_values_after |= fact.params

    def accumulate(self, added: Any) -> None:
        """A closure's pass adds to what an earlier step has used: its zero_grad() is missing."""
        optimizer, state = added.backward.inside, self.context.state
        if optimizer < 0:
            return
        now, again, params = state.steps.get(optimizer, 0), [], 0
        for group in added.groups:
            used = [held for held in group.held if held.used_by == optimizer and held.backward.during < now]
            if used and not group.edited:
                again += [held.backward for held in used]
                params |= group.params
        if not again:
            return
        if not params & self._real:
            self.context.log.index.wanted_values |= params
            return
        self._times[optimizer] += 1
        if self._times[optimizer] >= 2:
            self._say(optimizer, state.sites[optimizer], now, again)

    def step(self, facts: StepFacts) -> None:
        """Look for what this optimizer has used before."""
        optimizer = facts.step.optimizer
        again, params = [], 0
        for group in facts.groups:
            used = [held for held in group.held if held.used_by == optimizer]
            if used and group.fresh and not group.edited:
                again += [held.backward for held in used]
                params |= group.params
        if not again:
            return
        if not params & self._real:
            self.context.log.index.wanted_values |= params
            return
        self._times[optimizer] += 1
        if self._times[optimizer] >= 2:
            self._say(optimizer, facts.step.site, facts.number, again)

    def _say(self, optimizer: int, site: Any, number: int, again: list[Any]) -> None:
        times = self._times[optimizer]
        self.report_as(
            self.MISSING_ZERO_GRAD,
            "error",
            site,
            "`.grad` is not cleared between updates, so every step applies the gradients of earlier batches again.",
            f"update {number} of {self.context.name(optimizer)} applied {numbered(again)} again; {times} updates "
            "did so",
            f"{self.context.variable(optimizer)}.zero_grad()  # before loss.backward()",
            lambda: self._cause(optimizer, site, again[-1].site),
        )

    def _cause(self, optimizer: int, step: Site, backward: Site) -> Cause | None:
        """Return a call without brackets, of a wrong net, or behind an ``if`` never true; or where one is missing.

        The net is wrong if the function clears it, and steps another one that nothing clears.
        """
        log, state = self.context.log, self.context.state
        own, clears = state.params_of[optimizer], state.clear_sites
        scope = function_around(step)
        for site, params in clears.items() if not any(cleared & own for cleared in clears.values()) else ():
            stepped = any(
                state.params_of[other] & params and function_around(where) is scope
                for other, where in state.sites.items()
            )
            if function_around(site) is scope and not stepped:
                return Cause(*site)
        files, reached = log.files(), log.callers
        return without_brackets(files, "zero_grad") or never_reached(files, "zero_grad", reached) or Cause(*backward)


class DoubleStep(Rule):
    """Two steps on the same gradients."""

    DOUBLE_STEP = Code("double-step", "06_optimizer_step", "Who moves the weights")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._times: Counter[Any] = Counter()

    def step(self, facts: StepFacts) -> None:
        """Is there nothing in the gradients but what this optimizer used in its last step?"""
        optimizer, held = facts.step.optimizer, facts.held
        if (
            self.context.state.optimizers[optimizer].own
            or facts.step.moved
            or not held
            or facts.edited
            or any(one.used_by != optimizer for one in held)
        ):
            return
        if facts.since.backwards or facts.since.others:  # others: see EmptyStep, which says why none came here
            return
        self._times[facts.step.site] += 1
        if (times := self._times[facts.step.site]) >= 2:
            self.report_as(
                self.DOUBLE_STEP,
                "error",
                facts.step.site,
                "Two steps are taken on one gradient: the second applies the same batches once more.",
                f"step {facts.number} of {self.context.name(optimizer)} found nothing but "
                f"{numbered([one.backward for one in held])}, applied by the step before; {times} times",
                "# take one of the two step() calls out",
            )


class ForeignGradients(Rule):
    """A step applies what another loss has left in the gradients, although that loss has its own optimizer."""

    FOREIGN_GRADIENTS_IN_STEP = Code("foreign-gradients-in-step", "04_zero_grad", "Two optimizers in a GAN")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._times: Counter[Any] = Counter()
        self._alone: defaultdict[int, set[Any]] = defaultdict(set)  # optimizer -> lines whose passes it used at once

    def step(self, facts: StepFacts) -> None:
        """Look for a pass of another line that another optimizer had used before this one's own pass began."""
        optimizer = facts.step.optimizer
        own = [held.backward for held in facts.held if held.used_by < 0]
        if not own or facts.edited or any(held.used_by == optimizer for held in facts.held):
            return  # what this optimizer itself has used before is MissingZeroGrad's
        newest = own[-1]
        self._alone[optimizer].add(newest.site)
        foreign = [
            held.backward
            for held in facts.held
            if held.used_by != optimizer
            and held.backward.site != newest.site
            and held.backward.used & ~facts.step.params
            and held.backward.used & facts.step.params == 0
            and held.backward.used_at < newest.number
            and held.backward.site not in self._alone[optimizer]
        ]
        if not foreign:
            return
        self._times[facts.step.site] += 1
        if (times := self._times[facts.step.site]) >= 2:
            line = foreign[-1].site[1]
            self.report_as(
                self.FOREIGN_GRADIENTS_IN_STEP,
                "error",
                facts.step.site,
                "This step also applies the gradients that another optimizer's loss has left in these parameters.",
                f"step {facts.number} of {self.context.name(optimizer)} applied {numbered(foreign)} of the loss in "
                f"line {line}, which another optimizer had already stepped on; {times} times",
                f"{self.context.variable(optimizer)}.zero_grad()  # right before its own loss.backward()",
                Cause(*newest.site),
            )

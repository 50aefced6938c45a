"""Loss scaling."""

from __future__ import annotations

import ast
from collections import Counter
from functools import partial
from typing import Any

from ..events import Site
from ..finding import Cause, Code, Edit
from ..source.calls import calls_on, receiver, replaced, with_loss, without_brackets
from ..source.syntax import function_around, loop_around, node_place, own_nodes, statements_around
from ..state.grad_state import StepFacts
from .base import Rule, RuleContext, numbered
from .clearing import MissingZeroGrad, clear_below


def missing_update(context: RuleContext, step: Site) -> Edit | Cause | None:
    """Return the missing ``scaler.update()``, or what skips it: for ``scaler.step(optimizer)`` at a line.

    It is a call without brackets, a line above the ``continue`` that jumps over it, the ``if`` around it, or a line
    below the last step.
    """
    scaler, scope, loop = receiver(step, "step"), function_around(step), loop_around(step)
    if not scaler or scope is None:
        return None
    if named := without_brackets(context.log.files(), "update", [scaler]):
        return replaced((named.file, named.line), ".update", ".update()") or named
    steps = [one for one in calls_on(scope, scaler, "step") if loop_around((step[0], one.lineno)) is loop]
    first = min(one.lineno for one in (*steps, *calls_on(scope, scaler, "unscale_")))
    below = Cause(step[0], max(one.end_lineno or 0 for one in steps), insert="below")
    updates = calls_on(scope, scaler, "update")
    if not updates:
        return Edit(below, f"{scaler}.update()")
    update = updates[0].lineno
    if len(updates) > 1 or loop_around((step[0], update)) is not loop:
        return below
    jumps = [
        one.lineno
        for one in own_nodes(loop or scope)
        if isinstance(one, ast.Continue if loop else ast.Return) and first < one.lineno < update
    ]
    if len(jumps) == 1:
        return Edit(Cause(step[0], jumps[0], insert="above"), f"{scaler}.update()")
    tests = [one.test for one in statements_around((step[0], update), ast.If) if isinstance(one, ast.If)]
    return node_place(step[0], tests[0]) if tests and not jumps else None


class Scaling(Rule):
    """A step that goes round the scaler, and a scaler that divides what was never multiplied."""

    SCALER_STEP_WITHOUT_UPDATE = Code(
        "scaler-step-without-update",
        "08_mixed_precision",
        "The whole loop",
        message="scaler.step() is never followed by scaler.update(): the loss scale cannot adapt.",
        fix="Make the scaler once, and call its update() once for each update, after the last scaler.step().",
    )
    SCALER_BYPASSED = Code(
        "scaler-bypassed",
        "08_mixed_precision",
        "The whole loop",
        message="The loss was multiplied by the scaler, but the step goes round it: it applies gradients that are "
        "thousands of times too large.",
        fix="Step through the scaler, scaler.step({optimizer}), and call scaler.update() after it.",
    )

    def _begin(self) -> None:
        self._open: dict[int, int] = {}  # optimizer -> scaler whose update() has not come yet

    def scaler_step(self, event: Any) -> None:
        """Look whether the update before this one has been closed."""
        if event.optimizer in self._open and (times := self.count(("open", event.site))) >= 2:
            name = self.context.name(event.optimizer)
            seen = f"{times} steps of {name} came without an update() since the one before"
            edit = partial(missing_update, self.context, event.site)
            self.report(self.SCALER_STEP_WITHOUT_UPDATE, event.site, seen, edit)
        self._open[event.optimizer] = event.scaler

    def scaler_update(self, event: Any) -> None:
        """An update is closed."""
        self._open = {optimizer: scaler for optimizer, scaler in self._open.items() if scaler != event.scaler}

    def step(self, facts: StepFacts) -> None:
        """Look for scaled gradients in a step, and for unscaled ones in a step of a scaler's."""
        fresh, site = [held for held in facts.held if held.used_by < 0], facts.step.site
        if not fresh or facts.edited:
            return
        passes = [held.backward for held in fresh]
        backward = passes[-1]
        if not facts.step.scaler and all(held.backward.scaled and not held.unscaled for held in fresh):
            seen = f"update {facts.number} applied {numbered(passes)} without unscaling"
            edit = partial(self._through_scaler, site, backward.site)
            self.report(self.SCALER_BYPASSED, site, seen, edit, of=facts.step.optimizer)
        elif facts.step.scaler and not any(one.scaled for one in passes) and self.count(backward.site) >= 2:
            seen = f"update {facts.number} divided the gradient of batch {backward.number}, whose loss was not scaled"
            self.report(NEVER_SCALED, backward.site, seen, partial(scaled_loss, backward.site, site))

    def _through_scaler(self, step: Site, backward: Site) -> Edit | Cause:
        """Return ``scaler.step(optimizer)`` for ``optimizer.step()``; the place alone where update() is missing."""
        scaler, optimizer = receiver(backward, "scale", step), receiver(step, "step")
        scope = function_around(step)
        if not scaler or not optimizer or scope is None:
            return Cause(*step)
        updated = any(one.lineno > step[1] for one in calls_on(scope, scaler, "update"))
        edit = replaced(step, f"{optimizer}.step()", f"{scaler}.step({optimizer})") if updated else None
        return edit or Cause(*step)


NEVER_SCALED = Scaling.SCALER_BYPASSED.with_(
    message="scaler.step() divides the gradients by the loss scale, but the loss was never multiplied by it.",
    fix="Multiply the loss first: scaler.scale(loss).backward().",
)


def scaled_loss(backward: Site, step: Site) -> Edit | Cause:
    """Return ``scaler.scale(loss).backward()`` for ``loss.backward()``, with the scaler of the step in its function."""
    scaler = receiver(step, "step", backward)
    return with_loss(backward, f"{scaler}.scale({{}})") if scaler else Cause(*backward)


class SkippedStep(Rule):
    """A scaler skips a step because of inf or NaN, and the next pass adds to the gradients that it has left.

    How sure: inf and NaN stay what they are whatever is added, so every later step is skipped until they are cleared:
    proven, but for the reason why they stay: a warning, and not where gradients are never cleared at all.
    """

    SKIPPED_STEP_KEEPS_GRADIENTS = Code(
        "skipped-step-keeps-gradients",
        "08_mixed_precision",
        severity="warning",
        message="The scaler skipped a step because of inf or NaN, and the gradients stayed: they spoil every later "
        "batch until they are cleared.",
        fix="Call {optimizer}.zero_grad() after every scaler.step(), also if the scaler has skipped the step.",
    )

    def _begin(self) -> None:
        self._skips: Counter[int] = Counter()  # optimizer -> its steps that were skipped
        self._sites: dict[int, Any] = {}
        self._kept: dict[int, tuple[Any, Any]] = {}  # optimizer -> the first pass that added, and what it added to

    def scaler_step(self, event: Any) -> None:
        """Count the steps that were skipped."""
        self.count(event.optimizer)
        if event.refused:
            self._skips[event.optimizer] += 1
            self._sites[event.optimizer] = event.site

    def accumulate(self, added: Any) -> None:
        """Look whether this pass adds to gradients that a scaler has refused."""
        for optimizer in self._skips:
            params = self.context.state.params_of[optimizer]
            groups = [group for group in added.groups if group.params & params and not group.edited]
            left = [held.backward for group in groups for held in group.fresh if held.backward.skipped_by_scaler]
            if left and optimizer not in self._kept:
                self._kept[optimizer] = added.backward, left[-1]

    def end(self, *, normal: bool) -> None:
        """Say so, unless gradients are never cleared at all."""
        for optimizer, (backward, left) in self._kept.items():
            if self.context.has_finding(MissingZeroGrad.MISSING_ZERO_GRAD):
                return
            site, name = self._sites[optimizer], self.context.name(optimizer)
            seen = f"batch {backward.number} was added to what batch {left.number} had left after a skipped step; "
            seen += f"{self._skips[optimizer]} of {self.times[optimizer]} steps of {name} were skipped"
            edit = partial(clear_below, self.context, optimizer, site)
            self.report(self.SKIPPED_STEP_KEEPS_GRADIENTS, site, seen, edit, of=optimizer)

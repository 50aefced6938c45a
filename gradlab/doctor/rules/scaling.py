"""Loss scaling."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from ..events import Site
from ..finding import Cause, Code, Edit
from ..source.calls import call_it, without_brackets
from ..source.grad_lines import calls_on, receiver, replaced, with_loss
from ..source.syntax import function_around, loop_around, node_place, own_nodes, statements_around
from ..state.grad_state import StepFacts
from .base import Rule, RuleContext, numbered
from .clearing import MissingZeroGrad, clear_below


def missing_update(context: RuleContext, site: Site) -> Edit | Cause | None:
    """Return where ``scaler.update()`` is missing, for a line with ``scaler.step()`` or ``unscale_()``.

    It is a call without brackets, a line above the ``continue`` that jumps over it, the ``if`` around it, or a line
    below the last step.
    """
    scaler, scope, loop = receiver(site, "step") or receiver(site, "unscale_"), function_around(site), loop_around(site)
    if not scaler:
        return None
    if named := without_brackets(context.log.files(), "update", [scaler]):
        return call_it(named)
    steps = [one for one in calls_on(scope, scaler, "step") if loop_around((site[0], one.lineno)) is loop]
    updates = calls_on(scope, scaler, "update")
    if not updates or len(updates) > 1 or loop_around((site[0], updates[0].lineno)) is not loop:
        below = Cause(site[0], max((one.end_lineno or 0 for one in steps), default=site[1]), insert="below")
        return below if updates else Edit(below, f"{scaler}.update()")
    between = range(min(one.lineno for one in (*steps, *calls_on(scope, scaler, "unscale_"))), updates[0].lineno)
    kind = ast.Continue if loop else ast.Return
    jumps = [one.lineno for one in own_nodes(loop or scope) if isinstance(one, kind) and one.lineno in between]
    if len(jumps) == 1:
        return Edit(Cause(site[0], jumps[0], insert="above"), f"{scaler}.update()")
    tests = [one.test for one in statements_around((site[0], updates[0].lineno), ast.If)]
    return node_place(site[0], tests[0]) if tests and not jumps else None


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

    NEVER_SCALED = SCALER_BYPASSED.with_(
        message="scaler.step() divides the gradients by the loss scale, but the loss was never multiplied by it.",
        fix="Multiply the loss first: scaler.scale(loss).backward().",
    )

    def _begin(self) -> None:
        self._open: dict[int, int] = {}  # optimizer -> scaler whose update() has not come yet

    def scaler_step(self, event: Any) -> None:
        """Look whether the update before this one has been closed."""
        if event.optimizer in self._open and (times := self.count(("open", event.site))) >= 2:
            seen = (
                f"{times} steps of {self.context.name(event.optimizer)} came without an update() since the one before"
            )
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
            self.report(self.NEVER_SCALED, backward.site, seen, partial(self._scale_loss, backward.site, site))

    def _through_scaler(self, step: Site, backward: Site) -> Edit | Cause:
        """Return ``scaler.step(optimizer)`` for ``optimizer.step()``; the place alone where update() is missing."""
        scaler, optimizer = receiver(backward, "scale", step), receiver(step, "step")
        updates = calls_on(function_around(step), scaler, "update") if scaler and optimizer else []
        updated = any(one.lineno > step[1] for one in updates)
        edit = replaced(step, f"{optimizer}.step()", f"{scaler}.step({optimizer})") if updated else None
        return edit or Cause(*step)

    def _scale_loss(self, backward: Site, step: Site) -> Edit | Cause:
        """Return ``scaler.scale(loss).backward()`` for ``loss.backward()``, with the scaler of the step."""
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
        self._skipped: dict[int, tuple[int, Site]] = {}  # optimizer -> how many steps were skipped, and where
        self._kept: dict[int, tuple[int, int]] = {}  # optimizer -> numbers of a pass and of what it was added to

    def scaler_step(self, event: Any) -> None:
        """Count the steps that were skipped."""
        self.count(event.optimizer)
        if event.refused:
            self._skipped[event.optimizer] = self._skipped.get(event.optimizer, (0,))[0] + 1, event.site

    def accumulate(self, added: Any) -> None:
        """Look whether this pass adds to gradients that a scaler has refused."""
        for optimizer in self._skipped:
            own = self.context.state.params_of[optimizer]
            groups = [group for group in added.groups if group.params & own and not group.edited]
            held = [one.backward.number for group in groups for one in group.fresh if one.backward.skipped_by_scaler]
            if held:
                self._kept.setdefault(optimizer, (added.backward.number, held[-1]))

    def end(self, *, normal: bool) -> None:
        """Say so, unless gradients are never cleared at all."""
        never = self.context.has_finding(MissingZeroGrad.MISSING_ZERO_GRAD)
        for optimizer, (number, left) in () if never else self._kept.items():
            skipped, site = self._skipped[optimizer]
            seen = f"batch {number} was added to what batch {left} had left after a skipped step; "
            seen += f"{skipped} of {self.times[optimizer]} steps of {self.context.name(optimizer)} were skipped"
            edit = partial(clear_below, self.context, optimizer, site)
            self.report(self.SKIPPED_STEP_KEEPS_GRADIENTS, site, seen, edit, of=optimizer)

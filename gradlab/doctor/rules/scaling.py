"""Loss scaling and autocast."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from ..events import Site
from ..finding import Cause, Code
from ..source.calls import calls_in_loop, conditional_call, context_around, without_brackets
from ..state.grad_groups import StepFacts
from .base import Rule, RuleContext, numbered


def missing_update(context: RuleContext, step: Site) -> Cause | None:
    """Return ``scaler.update`` without brackets, the ``if`` around it, or the step that it belongs after."""
    return without_brackets(context.log.files(), "update") or conditional_call(step, "update") or Cause(*step)


NEVER_SCALED = "scaler.step() divides the gradients by the loss scale, but the loss was never multiplied by it."


class Scaling(Rule):
    """A step that goes round the scaler, or a scaler that divides what was never multiplied."""

    SCALER_STEP_WITHOUT_UPDATE = Code("scaler-step-without-update", "08_mixed_precision", "The whole loop")
    SCALER_BYPASSED = Code("scaler-bypassed", "08_mixed_precision", "The whole loop")
    NEVER_SCALED = SCALER_BYPASSED.but(
        message=NEVER_SCALED, fix="Multiply the loss first: scaler.scale(loss).backward()."
    )

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._times: Counter[Any] = Counter()
        self._open: dict[int, int] = {}  # optimizer -> scaler whose update() has not come yet

    def scaler_step(self, event: Any) -> None:
        """Has the update before this one been closed?"""
        if event.optimizer in self._open:
            self._times["open", event.site] += 1
            if (times := self._times["open", event.site]) >= 2:
                self.report_as(
                    self.SCALER_STEP_WITHOUT_UPDATE,
                    "error",
                    event.site,
                    "scaler.step() is never followed by scaler.update(): the loss scale cannot adapt.",
                    f"{times} steps of {self.context.name(event.optimizer)} came without an update() since the one "
                    "before",
                    "scaler.update()  # once an update, after the last scaler.step(); make the scaler once",
                    partial(missing_update, self.context, event.site),
                )
        self._open[event.optimizer] = event.scaler

    def scaler_update(self, event: Any) -> None:
        """An update is closed."""
        self._open = {optimizer: scaler for optimizer, scaler in self._open.items() if scaler != event.scaler}

    def step(self, facts: StepFacts) -> None:
        """Look for scaled gradients in a step, and for unscaled ones in a step of a scaler's."""
        fresh = [held for held in facts.held if held.used_by < 0 and not facts.edited]
        if not fresh:
            return
        if not facts.step.scaler and all(held.backward.scaled and not held.unscaled for held in fresh):
            self.report_as(
                self.SCALER_BYPASSED,
                "error",
                facts.step.site,
                "The loss was multiplied by the scaler, but the step goes round it: it applies gradients that are "
                "thousands of times too large.",
                f"update {facts.number} applied {numbered([held.backward for held in fresh])} without unscaling",
                "scaler.step(optimizer); scaler.update()  # instead of optimizer.step()",
            )
        elif facts.step.scaler and not any(held.backward.scaled for held in fresh):
            self._unscaled(fresh[-1].backward, facts.number)

    def _unscaled(self, backward: Any, number: int) -> None:
        self._times[backward.site] += 1
        if self._times[backward.site] >= 2:
            self.report_as(
                self.SCALER_BYPASSED,
                "error",
                backward.site,
                NEVER_SCALED,
                f"update {number} divided the gradient of batch {backward.number}, whose loss was not scaled",
                "scaler.scale(loss).backward()",
            )


class Autocast(Rule):
    """backward() inside the autocast block."""

    BACKWARD_INSIDE_AUTOCAST = Code("backward-inside-autocast", "08_mixed_precision", "What runs in which type")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._times: Counter[Any] = Counter()

    def backward(self, backward: Any) -> None:
        """Was autocast on when it began?"""
        if not backward.autocast:
            return
        self._times[backward.site] += 1
        if (times := self._times[backward.site]) >= 2:
            self.report_as(
                self.BACKWARD_INSIDE_AUTOCAST,
                "warning",
                backward.site,
                "backward() runs inside the autocast block; PyTorch advises against it: backward picks its types by "
                "itself.",
                f"{times} backward passes began with autocast on",
                "# take loss.backward() out of the `with torch.autocast(...)` block",
                lambda: context_around(self.context.log.path(backward.site), "autocast") or Cause(*backward.site),
            )


class SkippedStep(Rule):
    """A scaler skips a step because of inf or NaN, and the next pass adds to the gradients that it has left.

    How it is known: `scaler.step()` took no step; the gradients that it refused were still there when a later backward
    pass added to them. Reported at the end, and not where gradients are never cleared at all.

    How sure: inf and NaN stay what they are whatever is added, so every later step is skipped until they are cleared:
    proven, but for the reason why they stay: a warning.
    """

    SKIPPED_STEP_KEEPS_GRADIENTS = Code("skipped-step-keeps-gradients", "08_mixed_precision")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._skips: Counter[int] = Counter()  # optimizer -> its steps that were skipped
        self._sites: dict[int, Any] = {}
        self._calls: Counter[int] = Counter()
        self._kept: dict[int, tuple[Any, Any]] = {}  # optimizer -> the first pass that added, and what it added to

    def scaler_step(self, event: Any) -> None:
        """Count the steps that were skipped."""
        self._calls[event.optimizer] += 1
        if event.refused:
            self._skips[event.optimizer] += 1
            self._sites[event.optimizer] = event.site

    def accumulate(self, added: Any) -> None:
        """Does this pass add to gradients that a scaler has refused?"""
        if not self._skips:
            return
        for optimizer in self._skips:
            params = self.context.state.params_of[optimizer]
            left = [
                held.backward
                for group in added.groups
                if group.params & params and not group.edited
                for held in group.fresh
                if held.backward.offered
            ]
            if left and optimizer not in self._kept:
                self._kept[optimizer] = added.backward, left[-1]

    def end(self, *, normal: bool) -> None:
        """Say so, unless gradients are never cleared at all."""
        for optimizer, (backward, left) in self._kept.items():
            if any(code == "missing-zero-grad" for code, _ in self.context.findings):
                return
            site = self._sites[optimizer]
            self.report_as(
                self.SKIPPED_STEP_KEEPS_GRADIENTS,
                "warning",
                site,
                "The scaler skipped a step because of inf or NaN, and the gradients stayed: they spoil every later "
                "batch until they are cleared.",
                f"batch {backward.number} was added to what batch {left.number} had left after a skipped step; "
                f"{self._skips[optimizer]} of {self._calls[optimizer]} steps of {self.context.name(optimizer)} were "
                "skipped",
                f"{self.context.variable(optimizer)}.zero_grad()  # after every scaler.step(), also if it was skipped",
                partial(self._place, site, backward.site),
            )

    def _place(self, site: Any, backward: Any) -> Cause:
        """Return the only clearing in the loop around a step, or the pass before which there should be one."""
        lines = calls_in_loop(site, "zero_grad")
        return Cause(site[0], lines[0]) if len(lines) == 1 else Cause(*backward)

"""Rules for loss scaling with a GradScaler, and for gradient clipping."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from ...formatting import number_of
from ..events import MANUAL_UPDATE, Clip, Site
from ..finding import Cause, Code, Edit
from ..source.blocks import used_up_iterator
from ..source.calls import call_at, calls_on, receiver, replaced, statement_at, with_loss, without_brackets
from ..source.syntax import function_around, loop_around, node_place, own_nodes, reworded, statements_around, text_of
from ..state.facts import StepFacts
from .base import Rule, RuleContext, numbered
from .clearing import MissingZeroGrad, clear_below

_WINDOW = ("07_gradient_accumulation", "Clip after the window")
_MOVE = "Move this call to after the last backward() of an update, right before step()."
_MIN_CALLS = 3  # calls from a line


def missing_update(context: RuleContext, site: Site) -> Edit | Cause | None:
    """Return the edit for a missing ``scaler.update()``; ``site`` calls ``scaler.step()`` or ``scaler.unscale_()``.

    The edit adds parentheses to ``scaler.update``, or a call below the last step or above the only ``continue`` or
    ``return`` that skips update(). Without an edit, return a location, such as the condition around update(), or None.
    """
    scaler, scope, loop = receiver(site, "step") or receiver(site, "unscale_"), function_around(site), loop_around(site)
    if not scaler:
        return None
    if named := without_brackets(context.log.files(), "update", [scaler]):
        return named
    steps = [node for node in calls_on(scope, scaler, "step") if loop_around((site[0], node.lineno)) is loop]
    updates = calls_on(scope, scaler, "update")
    if not updates or len(updates) > 1 or loop_around((site[0], updates[0].lineno)) is not loop:
        below = Cause(site[0], max((node.end_lineno or 0 for node in steps), default=site[1]), insert="below")
        return below if updates else Edit(below, f"{scaler}.update()")
    first = min((node.lineno for node in (*steps, *calls_on(scope, scaler, "unscale_"))), default=site[1])
    between = range(first, updates[0].lineno)
    kind = ast.Continue if loop else ast.Return
    jumps = [node.lineno for node in own_nodes(loop or scope) if isinstance(node, kind) and node.lineno in between]
    if len(jumps) == 1:
        return Edit(Cause(site[0], jumps[0], insert="above"), f"{scaler}.update()")
    tests = [node.test for node in statements_around((site[0], updates[0].lineno), ast.If)]
    return node_place(site[0], tests[0]) if tests and not jumps else None


class Scaling(Rule):
    """Steps that bypass a GradScaler although the loss is scaled, or use one without a scaled loss or an update()."""

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
        message="The loss was multiplied by the scaler, but the step bypasses it: it applies gradients that are "
        "thousands of times too large.",
        fix="Step through the scaler, scaler.step({optimizer}), and call scaler.update() after it.",
    )
    NEVER_SCALED = SCALER_BYPASSED.with_(
        message="scaler.step() divides the gradients by the loss scale, but the loss was never multiplied by it.",
        fix="Multiply the loss first: scaler.scale(loss).backward().",
    )

    def _begin(self) -> None:
        self._open: dict[int, int] = {}  # optimizer -> scaler that stepped it and has not been updated since

    def scaler_step(self, event: Any) -> None:
        if event.optimizer in self._open and (times := self.count(("open", event.site))) >= 2:
            name, edit = self.context.name(event.optimizer), partial(missing_update, self.context, event.site)
            proof = f"{times} steps of {name} came without an update() since the one before"
            self.report(self.SCALER_STEP_WITHOUT_UPDATE, event.site, proof, edit)
        self._open[event.optimizer] = event.scaler

    def scaler_update(self, event: Any) -> None:
        self._open = {optimizer: scaler for optimizer, scaler in self._open.items() if scaler != event.scaler}

    def step(self, facts: StepFacts) -> None:
        fresh, site = [entry for entry in facts.passes if entry.used_by < 0], facts.step.site
        if not fresh or facts.edited:
            return
        passes = [entry.backward for entry in fresh]
        backward = passes[-1]
        if not facts.step.scaler and all(entry.backward.scaled and not entry.unscaled for entry in fresh):
            proof = f"update {facts.number} applied {numbered(passes)} without unscaling"
            edit = partial(self._through_scaler, site, backward.site)
            self.report(self.SCALER_BYPASSED, site, proof, edit, of=facts.step.optimizer)
        elif facts.step.scaler and not any(backward.scaled for backward in passes) and self.count(backward.site) >= 2:
            proof = f"update {facts.number} divided the gradient of batch {backward.number}, whose loss was not scaled"
            self.report(self.NEVER_SCALED, backward.site, proof, partial(self._scale_loss, backward.site, site))

    def _through_scaler(self, step: Site, backward: Site) -> Edit | Cause:
        """Return the edit that steps through the scaler or, if no update() follows, only the location of the step."""
        scaler, optimizer = receiver(backward, "scale", step), receiver(step, "step")
        updates = calls_on(function_around(step), scaler, "update") if scaler and optimizer else []
        updated = any(node.lineno > step[1] for node in updates)
        edit = replaced(step, f"{optimizer}.step()", f"{scaler}.step({optimizer})") if updated else None
        return edit or Cause(*step)

    def _scale_loss(self, backward: Site, step: Site) -> Edit | Cause:
        """Return the edit that puts the loss into ``scaler.scale()``, or only the location if the scaler is unnamed."""
        scaler = receiver(step, "step", backward)
        return with_loss(backward, f"{scaler}.scale({{}})") if scaler else Cause(*backward)


class SkippedStep(Rule):
    """A GradScaler skips a step because of inf or NaN, and the next backward pass adds to the uncleared gradients.

    The sums are still inf or NaN, so every later step is skipped until the gradients are cleared. The severity is only
    "warning", since the gradients may be kept for a reason. Nothing is reported if the loop never clears gradients.
    """

    SKIPPED_STEP_KEEPS_GRADIENTS = Code(
        "skipped-step-keeps-gradients",
        "08_mixed_precision",
        severity="warning",
        message="The scaler skipped a step because of inf or NaN, and the gradients stayed: they spoil every later "
        "batch until they are cleared.",
        fix="Call {optimizer}.zero_grad() after every scaler.step(), even if the scaler has skipped the step.",
    )

    def _begin(self) -> None:
        self._skipped: dict[int, tuple[int, Site]] = {}  # optimizer -> number of skipped steps, and line of the last
        self._left: dict[int, tuple[int, int]] = {}  # optimizer -> number of a pass, and of the skipped one it added to

    def scaler_step(self, event: Any) -> None:
        self.count(event.optimizer)
        if event.refused:
            self._skipped[event.optimizer] = self._skipped.get(event.optimizer, (0,))[0] + 1, event.site

    def accumulate(self, added: Any) -> None:
        for optimizer in self._skipped:
            params = self.state.params_of[optimizer]
            groups = [group for group in added.groups if group.params & params and not group.edited]
            passes = [entry.backward for group in groups for entry in group.fresh]
            if numbers := [backward.number for backward in passes if backward.skipped_by_scaler]:
                self._left.setdefault(optimizer, (added.backward.number, numbers[-1]))

    def end(self, *, normal: bool) -> None:
        never = self.context.has_finding(MissingZeroGrad.MISSING_ZERO_GRAD)
        for optimizer, (number, left) in () if never else self._left.items():
            skipped, site = self._skipped[optimizer]
            proof = f"batch {number} was added to what batch {left} had left after a skipped step; "
            proof += f"{skipped} of {self.times[optimizer]} steps of {self.context.name(optimizer)} were skipped"
            edit = partial(clear_below, self.context, optimizer, site)
            self.report(self.SKIPPED_STEP_KEEPS_GRADIENTS, site, proof, edit, of=optimizer)


class Clipping(Rule):
    """Gradients are clipped while scaled, after the step, before ``backward()``, or between accumulated batches.

    It is also a mistake to clip an exhausted iterator, or the parameters of an optimizer other than the one that steps
    next. A line is reported if at least half of its calls are mistakes; for a wrong optimizer, all of them must be.
    """

    CLIP_BEFORE_UNSCALE = Code(
        "clip-before-unscale",
        "08_mixed_precision",
        "Unscale, then clip",
        message="The gradients are clipped while they are still multiplied by the loss scale, so nearly all of each is "
        "cut off.",
        fix="Call unscale_() of the scaler, with the optimizer, before the gradients are clipped.",
    )
    CLIP_BEFORE_BACKWARD = Code(
        "clip-without-effect",
        *_WINDOW,
        "warning",
        message="The call comes before backward(), when there is no new gradient to clip; what is stepped on is not "
        "clipped.",
        fix=_MOVE,
    )
    CLIP_AFTER_STEP = CLIP_BEFORE_BACKWARD.with_(
        message="The gradients are clipped after the step that has used them, which changes nothing.",
    )
    NOTHING_TO_CLIP = CLIP_BEFORE_BACKWARD.with_(
        message="The call gets no parameters, so nothing is clipped: it is given an iterator, and that is empty after "
        "its first use.",
        fix="Make a list of the parameters, with list(...), and clip that.",
    )
    ANOTHER_IS_STEPPED = CLIP_BEFORE_BACKWARD.with_(
        message="The gradients clipped here are not those that the next step uses: no call clips those of {optimizer}.",
        fix="Clip the parameters of {optimizer} here.",
    )
    CLIP_INSIDE_ACCUMULATION = Code(
        "clip-inside-accumulation",
        *_WINDOW,
        "warning",
        message="The sum so far is clipped after each micro-batch, and the next one is added on top: the window's "
        "gradient is distorted, and what is stepped on is not clipped.",
        fix=_MOVE,
    )

    def _begin(self) -> None:
        self._clipped: dict[int, Clip] = {}  # parameters -> the call that clipped them since the last step
        self._scaled: dict[int, Site] = {}  # optimizer -> line of its last scaler.step()
        # line -> its last clip, the numbers of the clipped passes, and the unclipped optimizer that stepped next, or -1
        self._open: dict[Site, tuple[Clip, set[int], int]] = {}
        self._wrong: dict[Site, tuple[Clip, int]] = {}  # line -> last clip that missed its step, optimizer that stepped
        self._covered = 0  # parameters whose newest gradients were clipped

    def clip(self, event: Clip) -> None:
        if event.measures:
            return
        self.count(event.site)
        self.times[event.site, "empty"] += event.empty
        self._close(event.site)
        covered = self.state.covered or -1  # gradients of parameters outside optimizers may never be cleared
        if event.params & self.state.covered:
            passes = {entry.backward.number for group in event.groups for entry in group.fresh}
            self._open[event.site] = event, passes, -1
        self._covered |= event.params
        groups = [group for group in event.groups if group.params & covered]
        entries = [entry for group in groups for entry in group.passes]
        fresh = [entry for entry in entries if entry.used_by < 0]
        in_closure = any(entry.backward.closure_of >= 0 for entry in entries)
        if not groups or in_closure or any(group.edited for group in groups):
            return  # passes in a closure count as used at once, although a clip in the closure precedes the update
        if any(entry.backward.scaled and not entry.unscaled for entry in fresh):
            self._say(self.CLIP_BEFORE_UNSCALE, event, 1, numbered([entry.backward for entry in fresh]))
        elif any(cleared.lost for since in self.state.since.values() for cleared in since.clearings):
            return  # another rule reports the clear that left nothing to clip
        elif not fresh:
            stepped = entries and not self.state.called_since_step
            code = self.CLIP_AFTER_STEP if stepped else self.CLIP_BEFORE_BACKWARD
            self._say(code, event, 2, numbered([entry.backward for entry in entries]) if entries else "no gradient")
        else:
            self._clipped = {group.params & covered: event for group in groups if group.fresh}

    def accumulate(self, added: Any) -> None:
        self._covered &= ~added.params
        for params, event in self._clipped.items():
            if any(group.params & params and group.fresh and not group.edited for group in added.groups):
                self._say(self.CLIP_INSIDE_ACCUMULATION, event, 2, f"batch {added.backward.number} after it")
        self._clipped.clear()

    def step(self, facts: Any) -> None:
        step = facts.step
        unclipped = not self._covered & step.present and not facts.edited and step.optimizer != MANUAL_UPDATE
        for site, (clip, passes, missed) in [*self._open.items()]:
            entries = [entry for group in facts.groups if group.params & clip.params for entry in group.fresh]
            if missed < 0 and unclipped and not clip.params & step.present:
                self._open[site] = clip, passes, step.optimizer
            elif missed < 0 or any(entry.backward.number in passes for entry in entries):
                del self._open[site]
        self._clipped.clear()

    def scaler_step(self, event: Any) -> None:
        """If the scaler skipped the step, forget the clips that waited for it; record the line of the step."""
        if not event.taken:
            self._open.clear()
        self._clipped.clear()
        self._scaled[event.optimizer] = event.site

    def _close(self, site: Site) -> None:
        """Count the last clip at a line as missed if the optimizer that stepped after it had unclipped gradients."""
        clip, _, missed = self._open.pop(site, (None, (), -1))
        if clip is not None and missed >= 0:
            self.times[site, "missed"] += 1
            self._wrong[site] = clip, missed

    def end(self, *, normal: bool) -> None:
        for site in [*self._open]:
            self._close(site)
        for site in [key[0] for key in self.times if key[1] == "empty"]:
            calls, empty, missed = self.times[site], self.times[site, "empty"], self.times[site, "missed"]
            if empty >= _MIN_CALLS and 2 * empty > calls and (cause := used_up_iterator(self.log.path(site))):
                proof = f"it got no parameters in {empty} of {number_of(calls, 'call')}"
                self.report(self.NOTHING_TO_CLIP, site, proof, reworded(cause, f"list({text_of(cause)})"))
            elif missed == calls >= _MIN_CALLS:
                clip, optimizer = self._wrong[site]
                proof = f"{missed} of {number_of(calls, 'call')} clip what {self.context.name(optimizer)} does not step"
                proof += self.context.listed(clip.params)
                self.report(self.ANOTHER_IS_STEPPED, site, proof, Cause(*site), of=optimizer)

    def _say(self, code: Code, event: Clip, least: int, proof: str) -> None:
        times, calls = self.count((code, event.site)), self.times[event.site]
        if times >= least and 2 * times >= calls:
            edit = partial(self._unscale, event) if code is self.CLIP_BEFORE_UNSCALE else Cause(*event.site)
            proof = f"{times} of {number_of(calls, 'call')} did so, the last one with {proof}"
            self.report(code, event.site, proof, edit)

    def _unscale(self, event: Clip) -> Edit | Cause:
        """Return the edit that inserts ``scaler.unscale_()`` above a clip or, if uncertain, only its location."""
        params_of, site = self.state.params_of, event.site
        steps = [step for optimizer, step in self._scaled.items() if params_of[optimizer] & event.params]
        scaler = receiver(steps[0], "step", site) if len(steps) == 1 else ""
        call = call_at(steps[0], "step") if scaler and loop_around(steps[0]) is loop_around(site) else None
        clip = statement_at(site)
        if call is None or clip is None or calls_on(function_around(site), scaler, "unscale_"):
            return Cause(*site)
        optimizer = ast.unparse(call.args[0] if call.args else call.keywords[0].value)
        return Edit(Cause(site[0], clip.lineno, insert="above"), f"{scaler}.unscale_({optimizer})")

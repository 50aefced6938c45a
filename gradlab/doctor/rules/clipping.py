"""Clipping at the wrong moment."""

from __future__ import annotations

import ast
from typing import Any

from ...formatting import number_of
from ..events import Clip, Site
from ..finding import Cause, Code, Edit
from ..source.grad_lines import call_at, calls_on, receiver, statement_at
from ..source.syntax import function_around, loop_around
from .base import Rule, numbered

_LESSON = ("07_gradient_accumulation", "Clip after the window")
_FIX = "Move this call to after the last backward() of an update, right before step()."


class Clipping(Rule):
    """Gradients are clipped while scaled, after the step, before there are any, or in the middle of a window."""

    CLIP_BEFORE_UNSCALE = Code(
        "clip-before-unscale",
        "08_mixed_precision",
        "Unscale, then clip",
        message="The gradients are clipped while they are still multiplied by the loss scale, so nearly all of each is "
        "cut off.",
        fix="Call unscale_() of the scaler, with the optimizer, before the gradients are clipped.",
    )
    CLIP_BEFORE_BACKWARD = Code(
        "clip-before-backward",
        *_LESSON,
        message="The call comes before backward(), when there is no new gradient to clip; what is stepped on is not "
        "clipped.",
        fix=_FIX,
    )
    CLIP_AFTER_STEP = Code(
        "clip-after-step",
        *_LESSON,
        message="The gradients are clipped after the step that has used them, which changes nothing.",
        fix=_FIX,
    )
    CLIP_INSIDE_ACCUMULATION = Code(
        "clip-inside-accumulation",
        *_LESSON,
        "warning",
        message="The sum so far is clipped after each micro-batch, and the next one is added on top: the window's "
        "gradient is distorted, and what is stepped on is not clipped.",
        fix=_FIX,
    )

    def _begin(self) -> None:
        self._called = False  # was a model called since the last step?
        self._clipped: dict[int, Any] = {}  # params -> the clip that is followed by no step yet
        self._scaled: dict[int, Site] = {}  # optimizer -> the line that steps it by a scaler

    def clip(self, event: Any) -> None:
        """Look at what there is to clip."""
        if event.measures:
            return
        self.count(event.site)
        covered = self.context.state.covered() or -1  # what no optimizer holds is nobody's to clear
        groups = [group for group in event.groups if group.params & covered]
        if not groups:
            return
        held = [one for group in groups for one in group.held]
        fresh = [one for group in groups for one in group.fresh]
        if any(group.edited for group in groups) or any(one.backward.closure_of >= 0 for one in held):
            return  # in a closure, the step that calls it comes after all
        if any(one.backward.scaled and not one.unscaled for one in fresh):
            self._say(self.CLIP_BEFORE_UNSCALE, event, 1, numbered([one.backward for one in fresh]))
        elif any(cleared.lost for since in self.context.state.since.values() for cleared in since.clearings):
            return  # there is a reason why there is nothing left to clip
        elif not fresh:
            code = self.CLIP_AFTER_STEP if held and not self._called else self.CLIP_BEFORE_BACKWARD
            self._say(code, event, 2, numbered([one.backward for one in held]) if held else "no gradient")
        else:
            self._clipped = {group.params & covered: event for group in groups if group.fresh}

    def accumulate(self, added: Any) -> None:
        """Look for another micro-batch after a clip, with no step between them."""
        for params, event in self._clipped.items():
            if any(group.params & params and group.fresh and not group.edited for group in added.groups):
                self._say(self.CLIP_INSIDE_ACCUMULATION, event, 2, f"batch {added.backward.number} came after it")
        self._clipped.clear()

    def step(self, facts: Any) -> None:
        """The clipped gradients are used."""
        self._clipped.clear()
        self._called = False

    def scaler_step(self, event: Any) -> None:
        """They would have been used, if the scaler has skipped the step."""
        self._clipped.clear()
        self._scaled[event.optimizer] = event.site

    def forward(self, event: Any) -> None:
        """The next batch is at work."""
        self._called = self._called or event.grad

    def _say(self, code: Code, event: Any, least: int, seen: str) -> None:
        times, calls = self.count((code, event.site)), self.times[event.site]
        if times >= least and 2 * times >= calls:
            edit = (lambda: self._unscale(event)) if code is self.CLIP_BEFORE_UNSCALE else Cause(*event.site)
            self.report(code, event.site, f"{times} of {number_of(calls, 'call')}: {seen}", edit)

    def _unscale(self, event: Clip) -> Edit | Cause:
        """Return ``scaler.unscale_(optimizer)`` above the clip, if the scaler steps one optimizer in the same loop."""
        params_of, site = self.context.state.params_of, event.site
        steps = [step for optimizer, step in self._scaled.items() if params_of[optimizer] & event.params]
        scaler = receiver(steps[0], "step", site) if len(steps) == 1 else ""
        call = call_at(steps[0], "step") if scaler and loop_around(steps[0]) is loop_around(site) else None
        clip, scope = statement_at(site), function_around(site)
        if call is None or clip is None or scope is None or calls_on(scope, scaler, "unscale_"):
            return Cause(*site)
        return Edit(Cause(site[0], clip.lineno, insert="above"), f"{scaler}.unscale_({ast.unparse(call.args[0])})")

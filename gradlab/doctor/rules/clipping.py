"""Clipping at the wrong moment, and of the wrong parameters."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from ...formatting import number_of
from ..events import MANUAL_UPDATE, Clip, Site
from ..finding import Cause, Code, Edit
from ..source.blocks import used_up_iterator
from ..source.calls import call_at, calls_on, receiver, statement_at
from ..source.syntax import function_around, loop_around, reworded, words_of
from .base import Rule, numbered

_LESSON = ("07_gradient_accumulation", "Clip after the window")
_FIX = "Move this call to after the last backward() of an update, right before step()."


_LEAST = 3  # calls of a line


class Clipping(Rule):
    """Gradients are clipped while scaled, after the step, before there are any, or in the middle of a window.

    Or none are: the call got an iterator that is used up, or the parameters of another optimizer than the one that
    steps next. Both are known for each call, and told where (nearly) all calls of a line are like that.
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
        *_LESSON,
        "warning",
        message="The call comes before backward(), when there is no new gradient to clip; what is stepped on is not "
        "clipped.",
        fix=_FIX,
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
        message="What is clipped here is not what the next step uses: no call clips the gradients of {optimizer}.",
        fix="Clip the parameters of {optimizer} here.",
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
        self._open: dict[Site, tuple[Clip, set[int]]] = {}  # line -> its last clip, and the passes that it clipped
        self._missed: dict[Site, int] = {}  # line of a clip in _open -> the optimizer that stepped next, unclipped
        self._wrong: dict[Site, tuple[Clip, int]] = {}  # the last such clip of a line that no later step has used
        self._covered = 0  # parameters whose newest gradients were clipped

    def clip(self, event: Any) -> None:
        """Look at what there is to clip."""
        if event.measures:
            return
        self.count(event.site)
        if event.empty:
            self.count((event.site, "empty"))
        self._close(event.site)
        passes = {held.backward.number for group in event.groups for held in group.fresh}
        if event.params & self.context.state.covered():
            self._open[event.site] = event, passes
        self._covered |= event.params
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
        self._covered &= ~added.params
        for params, event in self._clipped.items():
            if any(group.params & params and group.fresh and not group.edited for group in added.groups):
                self._say(self.CLIP_INSIDE_ACCUMULATION, event, 2, f"batch {added.backward.number} came after it")
        self._clipped.clear()

    def step(self, facts: Any) -> None:
        """The clipped gradients are used."""
        step = facts.step
        unclipped = not self._covered & step.present and not facts.edited and step.optimizer != MANUAL_UPDATE
        for site, (clip, passes) in [*self._open.items()]:
            own = [one for group in facts.groups if group.params & clip.params for one in group.fresh]
            if site in self._missed:
                used = any(one.backward.number in passes for one in own)
            else:
                used = bool(clip.params & step.present) or not unclipped
                self._missed |= {} if used else {site: step.optimizer}
            if used:
                self._forget(site)
        self._clipped.clear()
        self._called = False

    def scaler_step(self, event: Any) -> None:
        """They would have been used, if the scaler has skipped the step."""
        for site in [] if event.taken else [*self._open]:
            self._forget(site)
        self._clipped.clear()
        self._scaled[event.optimizer] = event.site

    def forward(self, event: Any) -> None:
        """The next batch is at work."""
        self._called = self._called or event.grad

    def _forget(self, site: Site) -> None:
        self._open.pop(site, None)
        self._missed.pop(site, None)

    def _close(self, site: Site) -> None:
        """The last clip of a line can be used no more."""
        if site in self._missed:
            self.count((site, "missed"))
            self._wrong[site] = self._open[site][0], self._missed[site]
        self._forget(site)

    def end(self, *, normal: bool) -> None:
        """Tell the lines that clip nothing, or what does not step."""
        for site in [*self._open]:
            self._close(site)
        calls = {site: self.times[site] for site in self.times if (site, "empty") in self.times or site in self._wrong}
        for site, count in calls.items():
            empty, missed = self.times[site, "empty"], self.times[site, "missed"]
            if empty >= _LEAST and 2 * empty > count and (made := used_up_iterator(self.context.log.path(site))):
                seen = f"it got no parameters in {empty} of {number_of(count, 'call')}"
                self.report(self.NOTHING_TO_CLIP, site, seen, partial(_listed, made))
            elif missed == count >= _LEAST:
                clip, optimizer = self._wrong[site]
                seen = f"{missed} of {number_of(count, 'call')} clip what {self.context.name(optimizer)} does not step"
                seen += self.context.listed(clip.params)
                self.report(self.ANOTHER_IS_STEPPED, site, seen, Cause(*site), of=optimizer)

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


def _listed(iterator: Cause) -> Edit | Cause:
    """Return the edit that makes a list of an iterator."""
    return reworded(iterator, f"list({words_of(iterator)})")

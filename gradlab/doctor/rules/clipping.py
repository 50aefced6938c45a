"""Clipping at the wrong moment."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...formatting import number_of
from ..finding import Code, Severity
from .base import Rule, RuleContext, numbered

_FIX = "torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)  # after the last backward(), right before step()"


class Clipping(Rule):
    """Gradients are clipped while scaled, after the step, before there are any, or in the middle of a window."""

    CLIP_BEFORE_UNSCALE = Code("clip-before-unscale", "08_mixed_precision", "Unscale, then clip")
    CLIP_BEFORE_BACKWARD = Code("clip-before-backward", "07_gradient_accumulation", "Clip after the window")
    CLIP_AFTER_STEP = Code("clip-after-step", "07_gradient_accumulation", "Clip after the window")
    CLIP_INSIDE_ACCUMULATION = Code("clip-inside-accumulation", "07_gradient_accumulation", "Clip after the window")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._times: Counter[Any] = Counter()
        self._calls: Counter[Any] = Counter()
        self._called = False  # was a model called since the last step?
        self._clipped: dict[int, Any] = {}  # params -> the clip that is followed by no step yet

    def clip(self, event: Any) -> None:
        """Look at what there is to clip."""
        if event.measures:
            return
        self._calls[event.site] += 1
        groups = event.groups
        covered = self.context.state.covered()  # what no optimizer holds is nobody's to clear
        if covered:
            groups = [group for group in groups if group.params & covered]
        if not groups:
            return
        held = [one for group in groups for one in group.held]
        fresh = [one for group in groups for one in group.fresh]
        if any(group.edited for group in groups) or any(one.backward.inside >= 0 for one in held):
            return  # in a closure, the step that calls it comes after all
        if any(one.backward.scaled and not one.unscaled for one in fresh):
            self._say(self.CLIP_BEFORE_UNSCALE, event, "error", 1, *_SCALED, numbered([one.backward for one in fresh]))
        elif any(cleared.lost for since in self.context.state.since.values() for cleared in since.clearings):
            return  # there is a reason why there is nothing left to clip
        elif not held:
            self._say(self.CLIP_BEFORE_BACKWARD, event, "error", 2, *_EMPTY, "no gradient")
        elif not fresh and self._called:
            self._say(self.CLIP_BEFORE_BACKWARD, event, "error", 2, *_EMPTY, numbered([one.backward for one in held]))
        elif not fresh:
            self._say(self.CLIP_AFTER_STEP, event, "error", 2, *_LATE, numbered([one.backward for one in held]))
        else:
            self._clipped = {group.params & (covered or -1): event for group in groups if group.fresh}

    def accumulate(self, added: Any) -> None:
        """Does another micro-batch come after a clip, with no step between them?"""
        for params, event in list(self._clipped.items()):
            if any(group.params & params and group.fresh and not group.edited for group in added.groups):
                self._say(
                    self.CLIP_INSIDE_ACCUMULATION,
                    event,
                    "warning",
                    2,
                    *_INSIDE,
                    f"batch {added.backward.number} came after it",
                )
        self._clipped.clear()

    def step(self, facts: Any) -> None:
        """The clipped gradients are used."""
        self._clipped.clear()
        self._called = False

    def scaler_step(self, event: Any) -> None:
        """They would have been used, if the scaler has skipped the step."""
        self._clipped.clear()

    def forward(self, event: Any) -> None:
        """The next batch is at work."""
        self._called = self._called or event.grad

    def _say(self, code: Code, event: Any, severity: Severity, least: int, message: str, fix: str, seen: str) -> None:
        self._times[code, event.site] += 1
        times, calls = self._times[code, event.site], self._calls[event.site]
        if times >= least and 2 * times >= calls:
            self.report_as(code, severity, event.site, message, f"{times} of {number_of(calls, 'call')}: {seen}", fix)


_SCALED = (
    "The gradients are clipped while they are still multiplied by the loss scale, so nearly all of each is cut off.",
    "scaler.unscale_(optimizer)  # before clip_grad_norm_",
)
_EMPTY = (
    "The call comes before backward(), when there is no new gradient to clip; what is stepped on is not clipped.",
    _FIX,
)
_LATE = ("The gradients are clipped after the step that has used them, which changes nothing.", _FIX)
_INSIDE = (
    "The sum so far is clipped after each micro-batch, and the next one is added on top: the window's gradient is "
    "distorted, and what is stepped on is not clipped.",
    _FIX,
)

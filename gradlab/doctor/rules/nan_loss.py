"""Losses that are NaN or infinite."""

from __future__ import annotations

import math
from collections import deque

from ...formatting import short
from ..events import Backward, LossFlaw, bit_positions
from ..finding import Code
from ..state.grad_state import StepFacts
from .base import Rule

_MOST = 256
_SCALED_ROW = 8  # a scaler's first scale is too large for some batches, and it skips these steps
_FIXES = {
    "torch.log": "Keep the input of the logarithm above 0, for example with clamp_min(1e-8), or use the logits.",
    "division": "Keep the divisor away from 0, for example by adding 1e-8 to it.",
    "torch.exp": "Keep the input of the exponential below 80, for example with clamp(max=80), or use torch.logsumexp.",
    "softmax": "Leave at least one entry of each row unmasked.",
    "mean over": "Leave the mean out where nothing is selected.",
    "cross_entropy": "Skip the batches in which no target is left.",
    "": "Keep the input of this operation in the range where its result and its gradient are finite.",
}


class NanLoss(Rule):
    """The loss is NaN or infinite, a step applies its gradients, and it stays so.

    Known from the number itself, when ``backward()`` begins (on a GPU: when the next batch of numbers is fetched). The
    operation is known on the CPU, from what the first such graph has saved; its line, when the loop goes on to another
    pass. A pass that is skipped, or whose gradients are repaired, leaves the next loss finite: nothing is said.
    """

    wakes_on = frozenset(("pass",))
    NAN_LOSS = Code(
        "nan-loss",
        "08_mixed_precision",
        severity="warning",
        message="The loss is {number} from batch {batch} on: which operation made it is not known.",
        fix="Run a few batches under torch.autograd.set_detect_anomaly(True): it names the operation.",
    )
    DIVERGED = NAN_LOSS.with_(
        message="The loss is {number} from batch {batch} on: it grew from batch to batch, as it does when the learning "
        "rate is too large.",
        fix="Use a smaller learning rate, or clip the gradients.",
    )
    OPERATION = NAN_LOSS.with_(
        message="The loss is {number} from batch {batch} on: the first operation whose result is not finite is {what}.",
        fix="{how}",
    )
    DATA = NAN_LOSS.with_(
        message="The loss is {number} from batch {batch} on: {what} hold NaN already.",
        fix="Find the rows of the data that hold NaN, and leave them out or fill them in.",
    )
    WEIGHTS = NAN_LOSS.with_(
        message="The loss is {number} from batch {batch} on: the update before it made weights NaN or infinite.",
    )
    SLOPE = NAN_LOSS.with_(
        message="The loss is {number} from batch {batch} on: the update before it made weights NaN or infinite, and "
        "the graph has {what}, whose gradient is infinite at the edge of its range.",
        fix="{how}",
    )

    def _begin(self) -> None:
        self._first: dict[int, Backward] = {}  # call path -> first pass of the row of losses that are not finite
        self._flaws: dict[int, LossFlaw] = {}
        self._stepped: dict[int, tuple[int, int]] = {}  # pass -> number and parameters of the step that applied it
        self._spoilt: set[int] = set()  # call paths whose weights are not finite in later passes
        self._proven: dict[int, Backward] = {}

    def backward(self, backward: Backward) -> None:
        """Follow the losses of each line."""
        loss, path = backward.loss, backward.call_path
        if not isinstance(loss, float) or (path in self._proven and not backward.flaws):
            return
        for flaw in backward.flaws:
            if flaw.kind == "nan-spoilt":
                self._spoilt.add(path)
            elif flaw.kind.startswith("nan-") and (path not in self._flaws or flaw.edit):
                self._flaws[path] = flaw
        if math.isfinite(loss):
            if path not in self._proven:
                self.times[path] = 0
                self._first.pop(path, None)
            return
        first = self._first.setdefault(path, backward)
        row = self.count(path)
        if path in self._proven or first is backward:
            return
        never_applied = backward.scaled and math.isnan(loss) and row >= _SCALED_ROW
        if never_applied or (first.number in self._stepped and self._stays(path, first)):
            self._proven[path] = first

    def step(self, facts: StepFacts) -> None:
        """Note which of them a step has applied."""
        for first in self._first.values() if not facts.edited else ():
            if first in facts.fresh and len(self._stepped) < _MOST:
                self._stepped[first.number] = facts.number, facts.step.params

    def end(self, *, normal: bool) -> None:
        """Report each line once; where the loop ended with the first, its weights tell."""
        for path, first in self._first.items():
            if path in self._proven or self._weights_lost(first):
                self._say(path, first)

    def _stays(self, path: int, first: Backward) -> bool:
        row = self.times[path]  # weights are looked at now and then: on a GPU that takes a wait
        return path in self._spoilt or (row & (row - 1) == 0 and self._weights_lost(first))

    def _weights_lost(self, first: Backward) -> bool:
        _, params = self._stepped.get(first.number, (0, 0))
        tensors = map(self.context.log.index.param, bit_positions(params))
        floats = (one.detach() for one in tensors if one is not None and one.is_floating_point())
        return any(not one.isfinite().all() for one in floats)

    def _say(self, path: int, first: Backward) -> None:
        flaw, before = (
            self._flaws.get(path, LossFlaw("")),
            [short(loss) for loss in self.context.state.losses[path]][-3:],
        )
        update, _ = self._stepped.get(first.number, (0, 0))
        seen = f"batch {first.number} is the first whose loss is {short(first.loss)}"
        seen += f"; the losses before it were {', '.join(before)}" if before else ""
        seen += f"; update {update} applied its gradients" if update else ""
        weights = self.SLOPE if flaw.seen else self.WEIGHTS
        codes = {"nan-data": self.DATA, "nan-operation": self.OPERATION, "nan-weights": weights}
        grew = flaw.kind != "nan-data" and _grew(self.context.state.losses[path])
        code, edit = (self.DIVERGED, None) if grew else (codes.get(flaw.kind, self.NAN_LOSS), flaw.edit)
        how = next(text for part, text in _FIXES.items() if part in flaw.seen)
        number = "NaN" if math.isnan(first.loss) else "infinite"
        self.report(code, first.site, seen, edit, number=number, batch=first.number, what=flaw.seen, how=how)


def _grew(losses: deque[float]) -> bool:
    sizes = [abs(loss) for loss in losses]
    return len(sizes) > 1 and sizes[-1] >= 0.1 * max(sizes) and max(sizes) > 1000 * max(min(sizes), 1e-3)

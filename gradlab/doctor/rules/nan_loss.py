"""Losses that are NaN or infinite."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from typing import Any

from ...formatting import short
from ..events import NO_SITE, LossFlaw, bit_positions
from ..finding import Cause, Code
from ..source.calls import calls_named
from ..source.syntax import only
from ..state.grad_groups import StepFacts
from .base import Rule, RuleContext

_REMEMBERED = 16
_MOST = 256
_SCALED_ROW = 8  # a scaler's first scale is too large for some batches, and it skips these steps
_NAMES = {
    **{
        name: (name,)
        for name in ("log", "exp", "sqrt", "division", "norm", "softmax", "mean", "cross_entropy", "acos", "asin")
    },
    "pow": ("pow", "**"),
}
_FIXES = {
    "log": "torch.log((...).clamp_min(1e-8))  # around what stands there now; or a loss that takes logits",
    "division": "... / (... + 1e-8)  # around what stands there now",
    "exp": "torch.exp(x.clamp(max=80))  # or torch.logsumexp",
    "sqrt": "torch.sqrt(x + 1e-8)",
    "pow": "(x + 1e-8).pow(0.5)",
    "norm": "torch.sqrt(x.pow(2).sum(-1) + 1e-8)  # instead of x.norm(dim=-1)",
    "softmax": "# leave at least one entry of each row unmasked",
    "mean": "loss = x[mask].mean() if mask.any() else 0 * x.sum()",
    "cross_entropy": "if (y != ignore_index).any(): loss.backward()  # skip a batch without targets",
    "data": "assert torch.isfinite(x).all()  # then look for the rows in the data",
    "diverged": "lr = 0.1 * lr  # or nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
    "": "torch.autograd.set_detect_anomaly(True)  # names the operation, in a slow run",
}


class NanLoss(Rule):
    """The loss is NaN or infinite, a step applies its gradients, and it stays so.

    Known from the number itself, when ``backward()`` begins (on a GPU: when the next batch of numbers is fetched). The
    operation is known on the CPU, from what the first such graph has saved; its line, when the loop goes on to another
    pass. A pass that is skipped, or whose gradients are repaired, leaves the next loss finite: nothing is said.
    """

    NAN_LOSS = Code("nan-loss", "08_mixed_precision")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._losses: defaultdict[int, deque[float]] = defaultdict(lambda: deque(maxlen=_REMEMBERED))
        self._first: dict[int, Any] = {}  # call path -> first pass of the row of losses that are not finite
        self._flaws: dict[int, LossFlaw] = {}
        self._row: defaultdict[int, int] = defaultdict(int)
        self._stepped: dict[int, tuple[int, int, int]] = {}  # pass -> optimizer that applied it, update, parameters
        self._spoilt: set[int] = set()  # call paths whose weights are not finite in later passes
        self._proven: dict[int, Any] = {}

    def backward(self, backward: Any) -> None:
        """Follow the losses of each line."""
        loss, path = backward.loss, backward.call_path
        if not isinstance(loss, float) or (path in self._proven and not backward.flaws):
            return
        for flaw in backward.flaws:
            if flaw.kind == "nan-spoilt":
                self._spoilt.add(path)
            elif flaw.kind.startswith("nan-") and (path not in self._flaws or flaw.source):
                self._flaws[path] = flaw
        if math.isfinite(loss):
            self._losses[path].append(loss)
            if path not in self._proven:
                self._row[path] = 0
                self._first.pop(path, None)
            return
        first = self._first.setdefault(path, backward)
        self._row[path] += 1
        if path in self._proven or first is backward:
            return
        never_applied = backward.scaled and math.isnan(loss) and self._row[path] >= _SCALED_ROW
        if never_applied or (first.number in self._stepped and self._stays(path, first)):
            self._proven[path] = first

    def step(self, facts: StepFacts) -> None:
        """Note which of them a step has applied."""
        if self._first and not facts.edited:
            for first in self._first.values():
                if first in facts.fresh and len(self._stepped) < _MOST:
                    self._stepped[first.number] = facts.step.optimizer, facts.number, facts.step.params

    def end(self, *, normal: bool) -> None:
        """Report each line once; where the loop ended with the first, its weights tell."""
        for path, first in self._first.items():
            if path in self._proven or self._weights_lost(first):
                self._say(path, first)

    def _stays(self, path: int, first: Any) -> bool:
        row = self._row[path]  # weights are looked at now and then: on a GPU that takes a wait
        return path in self._spoilt or (row & (row - 1) == 0 and self._weights_lost(first))

    def _weights_lost(self, first: Any) -> bool:
        """Has the step that applied this pass left weights that are not finite?"""
        *_, params = self._stepped.get(first.number, (-1, 0, 0))
        for number in bit_positions(params):
            param = self.context.log.index.param(number)
            if param is not None and param.is_floating_point() and not bool(param.detach().isfinite().all()):
                return True
        return False

    def _say(self, path: int, first: Any) -> None:
        flaw, before = self._flaws.get(path), [short(loss) for loss in self._losses[path]][-3:]
        words, kind = (flaw.seen, flaw.kind) if flaw is not None else ("", "")
        name = "NaN" if math.isnan(first.loss) else "infinite"
        optimizer, update, _ = self._stepped.get(first.number, (-1, 0, 0))
        seen = f"batch {first.number} is the first whose loss is {short(first.loss)}"
        seen += f"; the losses before it were {', '.join(before)}" if before else ""
        seen += f"; update {update} applied its gradients" if update else ""
        cause: Cause | None = None
        if kind != "nan-data" and _grew(self._losses[path]):
            why, fix = "it grew from batch to batch, as it does when the learning rate is too large", _FIXES["diverged"]
            made = self.context.state.optimizers.get(optimizer)
            cause = Cause(*made.site) if made is not None and made.site != NO_SITE else None
        elif kind == "nan-operation":
            why = f"the first operation whose result is not finite is {words}"
            fix = next((text for part, text in _FIXES.items() if part in words), _FIXES[""])
            cause = _line(first.site[0], flaw, words)
        elif kind == "nan-data":
            why, fix = f"{words} hold NaN already", _FIXES["data"]
        elif kind == "nan-weights":
            why = "the update before it has made weights NaN or infinite"
            why += f", and its graph has {words}, whose gradient is infinite at the edge of its range" if words else ""
            fix = next((text for part, text in _FIXES.items() if part and part in words), _FIXES[""])
            cause = _line(first.site[0], flaw, words)
        else:
            why, fix = "which operation made it is not known", _FIXES[""]
        message = f"The loss is {name} from batch {first.number} on: {why}."
        self.report_as(self.NAN_LOSS, "warning", first.site, message, seen, fix, cause)


def _grew(losses: deque[float]) -> bool:
    """Did the loss rise more than a thousandfold before it was lost?"""
    sizes = [abs(loss) for loss in losses]
    return len(sizes) > 1 and sizes[-1] >= 0.1 * max(sizes) and max(sizes) > 1000 * max(min(sizes), 1e-3)


def _line(file: str, flaw: LossFlaw | None, words: str) -> Cause | None:
    """Return the call of the operation in the line that made it, or the line; without a line the only one in a file."""
    names = next((names for part, names in _NAMES.items() if part in words), ())
    if flaw is None or not flaw.source:
        return only(calls_named(file, names))
    file, line = flaw.source[-1]
    return only(calls_named(file, names[:1], line)) or only(calls_named(file, names, line)) or Cause(file, line)

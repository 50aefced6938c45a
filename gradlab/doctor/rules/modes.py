"""Training and evaluation mode, and evaluation that builds graphs."""

from __future__ import annotations

import re
from typing import Any

from ...formatting import number_of
from ..events import NO_SITE, Site
from ..finding import Cause, Code
from ..source.calls import end_of_function, first_in_loop, never_reached, without_brackets
from ..source.syntax import at, function_around
from ..state.grad_groups import StepFacts
from .base import Rule, RuleContext

_ENOUGH = 3  # updates, or graphs that were thrown away
_NORM = "Norm"  # BatchNorm1d, SyncBatchNorm, InstanceNorm2d
_VALIDATES = re.compile(r"val|test|infer|predict|score|accuracy|metric", re.IGNORECASE)


class EvalLeftOn(Rule):
    """Training goes on in evaluation mode after the model was put there to be validated."""

    EVAL_MODE_LEFT_ON = Code("eval-mode-left-on", section="6 · Learned by heart")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._trained: set[int] = set()  # modules that were trained in training mode
        self._eval: dict[int, Any] = {}  # module -> where it was put into evaluation mode
        self._calls: list[Any] = []
        self._updates = 0

    def mode(self, event: Any) -> None:
        """Remember where evaluation mode was switched on."""
        if event.training:
            self._eval.pop(event.module, None)
            self._updates = 0
        else:
            self._eval[event.module] = event.site

    def forward(self, event: Any) -> None:
        """Remember the calls that may be part of an update."""
        if event.grad and event.params:
            self._calls.append(event)
            del self._calls[:-16]

    def step(self, facts: StepFacts) -> None:
        """Was this update computed in evaluation mode, although earlier ones were not?"""
        calls = [call for call in self._calls if call.params & facts.step.params]
        self._calls.clear()
        if not calls or not facts.fresh:
            return
        call = calls[-1]
        if call.training:
            if call.train_kind:
                self._trained.add(call.module)
            self._updates = 0
            return
        if call.train_kind or not call.eval_kind:
            return
        self._updates += 1
        if self._updates >= _ENOUGH:
            where = self._eval.get(call.module) or next(iter(self._eval.values()), NO_SITE)
            if call.module not in self._trained:
                if call.module in self._eval:
                    self._never(call, where)
                return
            self.report_as(
                self.EVAL_MODE_LEFT_ON,
                "error",
                where if where != NO_SITE else call.site,
                f"Training goes on in evaluation mode: {call.eval_kind} no longer works as it does in training.",
                f"{self._updates} updates after model.eval() without a model.train(); earlier ones were in training",
                "model.train()  # before the training loop goes on",
                lambda: self._cause(where, call.site),
            )

    def _never(self, call: Any, where: Any) -> None:
        """Training never was in training mode: some mean it so."""
        self.report_as(
            self.EVAL_MODE_LEFT_ON,
            "hint",
            where,
            f"All training so far was in evaluation mode: {call.eval_kind} works as it does in evaluation.",
            f"{self._updates} updates after model.eval(), none in training mode",
            "model.train()  # before training, unless it is meant so",
            lambda: self._cause(where, call.site),
        )

    def _cause(self, where: Site, call: Site) -> Cause | None:
        """Return ``model.train`` without brackets, or where ``model.train()`` is missing."""
        files = self.context.log.files()
        known = without_brackets(files, "train") or never_reached(files, "train", self.context.log.callers)
        return known or end_of_function(where) or first_in_loop(call)


class ValidationInTrainMode(Rule):
    """The model is validated, under no_grad, in training mode."""

    VALIDATION_IN_TRAIN_MODE = Code("validation-in-train-mode")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._row: list[Any] = []
        self._stepped = 0
        self._phases = 0
        self._updates = 0  # since the last row
        self._last_train: Site = NO_SITE
        self._meant = False  # has somebody said train() since the last backward?

        self._eval_just_now = self._row_meant = False

    def mode(self, event: Any) -> None:
        """train() right before the calls: the statistics of BatchNorm are being taken, say.

        But not if eval() came right before it: then nobody can have meant both.
        """
        if not event.training and self._row and all(_NORM in call.train_kind for call in self._row):
            self._row = []  # statistics of BatchNorm were refreshed, and the evaluation begins now
        self._meant = event.training and not self._eval_just_now
        if event.training:
            self._last_train = event.site
        self._eval_just_now = not event.training or (self._eval_just_now and bool(self._row))

    def forward(self, event: Any) -> None:
        """Collect calls without gradients that follow one another with no training between them."""
        if not event.training:
            self._eval_just_now = False
        if event.grad:
            self._end_of_row()
        elif event.train_kind and event.training and not event.again and event.params & self._stepped:
            if not self._row:
                self._row_meant = self._meant
            self._row.append(event)
            del self._row[:-64]

    def backward(self, backward: Any) -> None:
        """Training goes on."""
        self._end_of_row()
        self._meant = False

    def step(self, facts: StepFacts) -> None:
        """Note what is being trained."""
        self._stepped |= facts.step.params
        self._updates += 1

    def end(self, *, normal: bool) -> None:
        """The last row has ended, too."""
        self._end_of_row()

    def _end_of_row(self) -> None:
        row, self._row = self._row, []
        updates, self._updates = self._updates, 0 if row else self._updates
        if updates < _ENOUGH:
            return  # so often only as a part of each update: targets, samples, gradient caching
        if not row or self._row_meant or len({call.site for call in row}) > 1:
            return
        if len(row) < 2 and not _VALIDATES.search(row[-1].caller):
            return  # one call may be a target or a sample
        if len(row) > 1 and len({call.first for call in row}) == 1:
            return  # the same input again and again is Monte Carlo dropout
        self._phases += 1
        if self._phases < 2 and len(row) < 4:
            return
        call = row[-1]
        self.report_as(
            self.VALIDATION_IN_TRAIN_MODE,
            "warning",
            call.site,
            f"The model is evaluated in training mode: {call.train_kind} works here as it does in training.",
            f"{number_of(len(row), 'call')}{' in a row' if row[1:] else ''} without gradients, "
            "with model.training True",
            "model.eval()  # before validation, and model.train() after it",
            lambda: self._cause(call.site),
        )

    def _cause(self, call: Site) -> Cause | None:
        """Return ``model.eval`` without brackets, ``model.train()`` in its place, or the call it belongs before."""
        files = self.context.log.files()
        scope = function_around(call)
        known = without_brackets(files, "eval") or never_reached(files, "eval", self.context.log.callers)
        return known or (at(self._last_train) if scope is function_around(self._last_train) else None) or Cause(*call)


class ValidationBuildsGraph(Rule):
    """Calls in evaluation mode build graphs, and each is thrown away without a backward pass.

    Known by following the graphs: an output's graph was freed, and nothing had gone back through any graph since it was
    built. It costs memory and time and no accuracy: a hint. Lines that a backward pass or ``autograd.grad``
    follows (attacks, saliency, a frozen network inside a loss) are left alone.
    """

    VALIDATION_BUILDS_GRAPH = Code("validation-builds-graph", "09_gpu_memory")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._trained = 0

    def step(self, facts: StepFacts) -> None:
        """Note what is trained."""
        self._trained |= facts.step.params

    def end(self, *, normal: bool) -> None:
        """Report the lines whose graphs were never used."""
        graphs = self.context.log.passes.unused_graphs
        graphs.settle()
        for site, (wasted, params) in graphs.lines.items():
            if wasted < _ENOUGH or not params & self._trained:
                continue
            self.report_as(
                self.VALIDATION_BUILDS_GRAPH,
                "hint",
                site,
                "The model is evaluated with gradients on: each call builds a graph that no backward() uses, which "
                "costs memory and time.",
                f"{wasted} graphs built in evaluation mode were thrown away before any backward() ran",
                "with torch.no_grad():  # around validation",
            )

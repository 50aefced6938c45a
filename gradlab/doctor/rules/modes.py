"""Rules for training and evaluation mode, and for evaluation that builds graphs."""

from __future__ import annotations

import re
from collections import deque
from functools import partial

from ...formatting import number_of
from ..events import NO_SITE, Backward, Forward, Mode, Site
from ..finding import Cause, Code, Edit
from ..source.blocks import name_in, no_grad_place, train_place, validation_place
from ..source.calls import without_brackets
from ..source.syntax import source_line
from ..state.facts import StepFacts
from ..state.names import spelled
from .base import Rule, RuleContext

_MIN_UPDATES = 3  # least number of updates, or of graphs that were freed without use
_NORM = "Norm"  # part of class names such as BatchNorm1d, SyncBatchNorm and InstanceNorm2d
_VALIDATES = re.compile(r"val|test|infer|predict|score|accuracy|metric", re.IGNORECASE)
_COMPUTED = re.compile(r"\.train\((?!\)|True\)|mode=True\))")  # train() with an argument that is not simply True


class EvalLeftOn(Rule):
    """Training continues in evaluation mode after validation, or is in evaluation mode from the start."""

    EVAL_MODE_LEFT_ON = Code(
        "eval-mode-left-on",
        section="3 · Learned by heart",
        message="Training goes on in evaluation mode: {kind} does not behave as in training.",
        fix="Call train() on the model before training goes on.",
    )
    NEVER_IN_TRAINING = EVAL_MODE_LEFT_ON.with_(
        severity="warning",
        message="All training so far was in evaluation mode: {kind} works as it does in evaluation.",
    )

    def _begin(self) -> None:
        self._trained: set[int] = set()  # ids of modules that a step updated after calls in training mode
        self._eval: dict[int, Site] = {}  # id of a module -> line that put it into evaluation mode
        self._evaluated: set[int] = set()  # ids of modules called without gradients since eval()
        self._calls: deque[Forward] = deque(maxlen=16)
        self._updates = 0

    def mode(self, event: Mode) -> None:
        self._evaluated.discard(event.module)
        if event.training:
            self._eval.pop(event.module, None)
            self._updates = 0
        else:
            self._eval[event.module] = event.site

    def forward(self, event: Forward) -> None:
        if event.grad and event.params:
            self._calls.append(event)
        elif not event.training:
            self._evaluated.add(event.module)

    def step(self, facts: StepFacts) -> None:
        """Count consecutive updates computed in evaluation mode, and report them from the third on."""
        calls = [call for call in self._calls if call.params & facts.step.params]
        self._calls.clear()
        if not calls or not facts.fresh:
            return
        call = calls[-1]
        if any(call.training for call in calls):
            self._trained |= {call.module for call in calls if call.training and call.train_kind}
            self._updates = 0
        elif call.eval_kind and not call.train_kind:
            self._updates += 1
            trained, alone = call.module in self._trained, len({call.site for call in calls}) == 1
            if self._updates == _MIN_UPDATES or (self._updates > _MIN_UPDATES and trained):
                whole = not call.params & ~facts.step.params
                self._say(call, call.site if alone else NO_SITE, trained=trained, whole=whole)

    def _say(self, call: Forward, only: Site, *, trained: bool, whole: bool) -> None:
        where = self._eval.get(call.module, NO_SITE)
        edit = partial(self._edit, where, only, _model_names(self.context, call.module))
        if trained:
            proof = f"{self._updates} updates in evaluation mode without a train(); earlier ones were in training mode"
            self.report(self.EVAL_MODE_LEFT_ON, where if where[1] else call.site, proof, edit, kind=call.eval_kind)
        elif whole and ".eval()" in source_line(where):  # otherwise the model trains in part, or a library ran eval()
            # Training after eval() may be intentional: it keeps the BatchNorm statistics of a pretrained model.
            intended = _NORM in call.eval_kind and call.module not in self._evaluated and only[1]
            code = self.NEVER_IN_TRAINING.with_(severity="hint") if intended else self.NEVER_IN_TRAINING
            proof = f"{self._updates} updates after eval(), none in training mode"
            self.report(code, where, proof, edit, kind=call.eval_kind)

    def _edit(self, where: Site, call: Site, names: set[str]) -> Edit | Cause | None:
        """Return the edit or location for a missing ``model.train()`` or for its missing parentheses, or None."""
        if names and (named := without_brackets(self.log.files(), "train", names)):
            return named
        cause = train_place(self.log.path(where), self.log.path(call)) if where[1] and call[1] else None
        name = name_in((cause.file, cause.line), names) if cause is not None else ""
        return Edit(cause, f"{name}.train()") if cause is not None and name else cause


def _model_names(context: RuleContext, module: int) -> set[str]:
    """Return the names of a model in the learner's code, such as ``net``, without those that fit several models."""
    inner, first = context.log.models.first_param(module)
    names, last = [name for names in context.log.names.params.values() for name in names], spelled(f".{inner}")
    its_names = [name for name in context.all_names(first) if names.count(name) == 1 and name.endswith(last)]
    return {name.removesuffix(last) for name in its_names} - {""}


class Validation(Rule):
    """The model is validated in training mode, or in evaluation mode with gradients enabled.

    For enabled gradients, the severity is "hint", since unused graphs cost memory and time but no accuracy. Model calls
    in a function or loop that never trains are reported if several of their graphs were freed before any backward pass.
    Graphs that a backward pass or ``autograd.grad`` uses (for attacks, saliency or a frozen network) do not count.
    """

    VALIDATION_IN_TRAIN_MODE = Code(
        "validation-in-train-mode",
        severity="warning",
        message="The model is evaluated in training mode: {kind} works here as it does in training.",
        fix="Call eval() on the model before validation, and train() after it.",
    )
    VALIDATION_BUILDS_GRAPH = Code(
        "validation-builds-graph",
        "09_gpu_memory",
        severity="hint",
        message="The model is evaluated with gradients on: each call builds a graph that no backward() uses, which "
        "costs memory and time.",
        fix="Put `with torch.no_grad():` around the validation.",
    )

    def _begin(self) -> None:
        self._row: list[Forward] = []  # consecutive model calls in training mode without gradients
        self._stepped = 0
        self._phases = 0
        self._updates = 0  # number of updates since ``_row`` last ended with calls in it
        self._resumed: set[int] = set()  # ids of modules whose train() was called after a step
        self._train = self._row_train = NO_SITE, False  # line of the last train(), and True if that is a mistake
        self._eval_just_now = False

    def mode(self, event: Mode) -> None:
        """Record the last train(), which may be intentional before evaluation, to refresh BatchNorm statistics.

        It counts as a mistake right after ``eval()``, or if its argument is computed: ``train(phase != "val")``.
        """
        if not event.training and all(_NORM in call.train_kind for call in self._row):
            self._row = []  # the calls so far refreshed BatchNorm statistics, and the evaluation begins now
        self._train = NO_SITE, False
        if event.training:
            self._train = event.site, self._eval_just_now or bool(_COMPUTED.search(source_line(event.site)))
            self._resumed |= {event.module} if self._stepped else set()
        self._eval_just_now = not event.training or (self._eval_just_now and bool(self._row))

    def forward(self, event: Forward) -> None:
        """Add a model call in training mode without gradients to the row; a call with gradients ends the row."""
        self._eval_just_now = self._eval_just_now and event.training
        if event.grad:
            self._end_of_row()
        elif event.train_kind and event.training and not event.again and event.params & self._stepped:
            self._row_train = self._row_train if self._row else self._train
            self._row = [*self._row[-63:], event]

    def backward(self, backward: Backward) -> None:
        self._end_of_row()
        self._train = NO_SITE, False

    def step(self, facts: StepFacts) -> None:
        self._stepped |= facts.step.params
        self._updates += 1

    def end(self, *, normal: bool) -> None:
        """Judge the last calls in training mode, and report calls in evaluation mode whose graphs were not used."""
        self._end_of_row()
        graphs, training = self.log.passes.unused_graphs, self._training_lines()
        for lines, wasted in graphs.wasted.items():
            places = [(site, no_grad_place(site, training, used=lines in graphs.used)) for site in lines]
            first = next(((site, edit) for site, edit in places if edit is not None), None)
            if first is not None and wasted >= _MIN_UPDATES:  # otherwise training may use the same functions
                proof = f"{wasted} graphs built in evaluation mode were thrown away before any backward() ran"
                self.report(self.VALIDATION_BUILDS_GRAPH, first[0], proof, first[1])

    def _end_of_row(self) -> None:
        row, self._row = self._row, []
        if not row:
            return
        updates, self._updates = self._updates, 0
        if updates < _MIN_UPDATES:
            return  # calls after so few updates belong to the update itself, for example to compute targets or samples
        train, wrong = self._row_train
        if (train[1] and not wrong) or len({call.site for call in row}) > 1:
            return
        if len(row) < 2 and not _VALIDATES.search(row[-1].caller):
            return  # a single call may compute a target or a sample
        if len(row) > 1 and len({call.first for call in row}) == 1:
            return  # repeated calls on the same input are Monte Carlo dropout
        self._phases += 1
        if self._phases >= 2 or len(row) >= 4:
            call = row[-1]
            proof = f"{number_of(len(row), 'call')}{' in a row' if row[1:] else ''} without gradients, in training mode"
            edit = partial(self._edit, call, train, _model_names(self.context, call.module))
            self.report(self.VALIDATION_IN_TRAIN_MODE, call.site, proof, edit, kind=call.train_kind)

    def _edit(self, call: Forward, undone: Site, names: set[str]) -> Edit | Cause | None:
        """Return the edit or location for an ``eval`` without parentheses, an undone eval(), or a missing eval()."""
        if names and (named := without_brackets(self.log.files(), "eval", names)):
            return named
        if undone[1]:
            line = source_line(undone).strip()
            return Edit(Cause(*undone), line.replace(".train()", ".eval()")) if ".train()" in line else Cause(*undone)
        cause, name = validation_place(call.site, self._training_lines()), name_in(call.site, names)
        return Edit(cause, f"{name}.eval()") if name and call.module in self._resumed else cause

    def _training_lines(self) -> set[Site]:
        return {line for site in self.state.training_sites for line in self.log.path(site)}

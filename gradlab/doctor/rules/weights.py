"""Rules for frozen weights that change, uncopied state_dicts, tied weights, and dropout in evaluation mode."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import partial

from ...formatting import number_of
from ..events import NO_SITE, Forward, Mode, Site
from ..finding import Cause, Code, Edit
from ..source.syntax import (
    assigned,
    calls_of,
    cause_at,
    dotted,
    function_around,
    node_place,
    nodes_at,
    reworded,
    single_or_none,
    source_line,
    text_of,
)
from ..state.facts import StepFacts
from .base import Rule
from .modes import Validation
from .stepping import EmptyStep

_MIN_CALLS = 3  # least number of steps of an optimizer, or of calls to a model
_MAX_KNOWN = 64
_SLOW_NAME = re.compile(r"(?<![a-z])(target|tgt|teacher|ema|old|ref|reference)(?![a-z])")
_SOURCE_NAME = re.compile(r"source|src")  # if another name of the module matches, its "target" is a domain or language


class FrozenMoves(Rule):
    """Frozen weights that old gradients or momentum still change, and frozen BatchNorm layers whose statistics change.

    The severity is "warning" for weights that steps changed without a new gradient, after backward passes had reached
    the weights. It is "hint" for statistics, since a layer may adapt to new data intentionally. A layer is reported if
    it is in training mode after eval() on it or on a module around it, or if only normalization layers are frozen.
    """

    OPTIMIZER_PARAMS_FROZEN = EmptyStep.OPTIMIZER_PARAMS_FROZEN.with_(
        severity="warning",
        message="The step changes weights with requires_grad=False: their old `.grad` or the optimizer's averages, "
        "momentum or weight decay still move them.",
        fix="Set the `.grad` of these parameters to None when you freeze them, or leave them out of {optimizer}.",
    )
    STATISTICS_MOVE = OPTIMIZER_PARAMS_FROZEN.with_(
        severity="hint",
        message="The weights of a normalization layer are frozen, but the layer is called in training mode, so its "
        "running mean and variance still change.",
        fix="Call eval() on the frozen layers after each train() of the whole model.",
    )

    def _begin(self) -> None:
        self._moved: defaultdict[int, int] = defaultdict(int)  # optimizer -> frozen weights that its steps changed
        self._norms: dict[Site, tuple[int, Site]] = {}  # line of a model call -> frozen norm weights, line of train()
        self._turned: dict[int, Site] = {}  # id of a module -> line that put it into training mode

    def mode(self, event: Mode) -> None:
        if event.training and len(self._turned) < _MAX_KNOWN:
            self._turned[event.module] = event.site

    def forward(self, event: Forward) -> None:
        if event.frozen_norms and event.grad and (event.site in self._norms or len(self._norms) < _MAX_KNOWN):
            tensors = self._norms.get(event.site, (0,))[0]
            self._norms[event.site] = tensors | event.frozen_norms, self._turned.get(event.module, NO_SITE)
            self.count(event.site)

    def step(self, facts: StepFacts) -> None:
        old = sum(group.params for group in facts.groups if not group.fresh and not group.edited)
        if moved := facts.step.frozen_moved & old & self.state.reached:
            self._moved[facts.step.optimizer] |= moved
            self.count(facts.step.optimizer)

    def end(self, *, normal: bool) -> None:
        for optimizer, params in self._moved.items():
            if (steps := self.times[optimizer]) >= _MIN_CALLS:
                proof = f"changed in {steps} steps of {self.context.name(optimizer)}{self.context.listed(params)}"
                self.report(self.OPTIMIZER_PARAMS_FROZEN, self.state.last[optimizer].step.site, proof, of=optimizer)
        for site, (params, turned) in self._norms.items():
            trained = params & (self.state.reached | self.log.index.weights_ever_written(params))
            if not trained and self.times[site] >= _MIN_CALLS <= sum(self.state.steps.values()):
                proof = f"{number_of(self.times[site], 'call')} in training mode{self.context.listed(params)}"
                self.report(self.STATISTICS_MOVE, site, proof, cause_at(turned))


class UncopiedState(Rule):
    """``load_state_dict()`` restores nothing: it gets the tensors in use, not copies, and steps have changed them."""

    STATE_DICT_NOT_COPIED = Code(
        "state-dict-not-copied",
        "06_optimizer_step",
        "Who moves the weights",
        "warning",
        message="Nothing is restored: state_dict() of {kind} returns its own tensors, and the steps since have changed "
        "them.",
        fix="Keep a copy: copy.deepcopy() of what state_dict() returns.",
    )

    def end(self, *, normal: bool) -> None:
        for site, load in self.log.models.uncopied.items():
            proof = f"{number_of(load.times, 'load')} of tensors that are in use; {number_of(load.steps, 'step')} since"
            self.report(self.STATE_DICT_NOT_COPIED, site, proof, partial(_copied, load.dict_site), kind=load.kind)


def _copied(site: Site) -> Edit | Cause | None:
    """Return the edit that clones the tensors of a model's ``state_dict()``.

    Return only the line's location unless it has one call, on one line, that names no optimizer, scheduler or scaler.
    """
    call = single_or_none(call for call, _ in calls_of(nodes_at(site), "state_dict"))
    text = text_of(cause := node_place(site[0], call)) if call is not None else ""
    if not text or not cause.end_column or re.search("opt|sched|scaler", text):
        return cause_at(site)
    return reworded(cause, f"{{name: tensor.clone() for name, tensor in {text}.items()}}")


class TiedWeights(Rule):
    """Two weights that are no longer tied, or one module with two names: a hint, since either may be intentional."""

    TIED_WEIGHTS = Code(
        "tied-weights",
        "04_zero_grad",
        "Whose parameters?",
        "hint",
        message="Two places of the model shared one weight, and each now has its own: they are trained separately.",
        fix="If they are to share it, tie them again below this line: give one place the parameter of the other.",
    )
    ONE_MODULE = TIED_WEIGHTS.with_(
        message="{slow} and {fast} are one module: each step of {fast} also moves {slow}.",
        fix="If {slow} is to stay behind, make it a copy: copy.deepcopy({fast}).",
    )

    def _begin(self) -> None:
        self._names: dict[int, tuple[str, list[str]]] = {}  # module id -> its name as a target network, its other names

    def forward(self, event: Forward) -> None:
        slow = [name for name in event.names if _SLOW_NAME.search(name.lower())]
        fast = [name for name in event.names if name not in slow]
        if slow and fast and not any(map(_SOURCE_NAME.search, map(str.lower, fast))) and len(self._names) < _MAX_KNOWN:
            self._names[event.module] = slow[0], fast
        if event.module in self._names:
            self.count((event.module, event.site))

    def end(self, *, normal: bool) -> None:
        for tie in dict.fromkeys(self.log.models.ties.values()):
            if tie.params and all(self.state.reached & param for param in tie.params):
                names = self.context.param_names(sum(tie.params))
                self.report(self.TIED_WEIGHTS, tie.site, f"both get gradients: {names}", Cause(*tie.site))
        for module, (slow, fasts) in self._names.items():
            sites = sorted(site for (key, site), times in self.times.items() if key == module and times >= _MIN_CALLS)
            site = next((site for site in sites if f"{slow}(" in source_line(site)), NO_SITE)
            lines = "".join(map(source_line, sites))
            fast = next((name for name in fasts if re.search(rf"(?<![\w.]){re.escape(name)}\(", lines)), "")
            if site[1] and fast:
                proof = f"both were called, {slow} {number_of(self.times[module, site], 'time')}"
                value = single_or_none(assigned(site[0], slow))
                cause = node_place(site[0], value) if value is not None else None
                self.report(self.ONE_MODULE, site, proof, cause, slow=slow, fast=fast)


class DropoutInEvaluation(Rule):
    """``F.dropout`` without ``training=`` in the forward() of a model that is called in evaluation mode.

    By default, dropout is active in both modes. The severity is "hint", as sampling with dropout may be intentional.
    """

    VALIDATION_IN_TRAIN_MODE = Validation.VALIDATION_IN_TRAIN_MODE.with_(
        severity="hint",
        message="This dropout is also active in evaluation mode: the function does not depend on the model's mode.",
        fix="Give it training=self.training, or use nn.Dropout.",
    )

    def forward(self, event: Forward) -> None:
        for start in event.dropouts if event.params & self.state.covered else ():
            self.count(start)

    def end(self, *, normal: bool) -> None:
        for (file, line), times in self.times.items():
            nodes = list(ast.walk(function_around((file, line + 1))))
            branches = [node for node in nodes if isinstance(node, (ast.If, ast.IfExp))]
            guarded = {x for branch in branches if "training" in ast.unparse(branch.test) for x in ast.walk(branch)}
            for node in nodes:
                if isinstance(node, ast.Call) and node not in guarded and _ignores_mode(node):
                    cause = node_place(file, node)
                    proof = f"{number_of(times, 'call')} of the model in evaluation mode"
                    edit = partial(reworded, cause, f"{text_of(cause)[:-1]}, training=self.training)")
                    self.report(self.VALIDATION_IN_TRAIN_MODE, (file, node.lineno), proof, edit)


def _ignores_mode(call: ast.Call) -> bool:
    """Return whether a call is to F.dropout or a variant of it, and no argument passes or mentions ``training``."""
    drops = re.fullmatch(r"(.*\.)?(F|functional)\.(dropout[123]?d?|alpha_dropout)", dotted(call.func))
    mentions = "training" in ast.unparse(call)  # True also for a dropout rate that depends on the mode
    return bool(drops) and not mentions and len(call.args) < 3 and all(keyword.arg for keyword in call.keywords)

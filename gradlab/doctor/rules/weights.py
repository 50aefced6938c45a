"""Weights that are not what they seem: frozen ones that move, states that are no copies, two names for one module."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import partial

from ...formatting import number_of
from ..events import NO_SITE, Forward, Mode, Site
from ..finding import Cause, Code, Edit
from ..source.syntax import (
    called,
    calls_of,
    cause_at,
    dotted,
    function_around,
    node_place,
    nodes_at,
    reworded,
    source_line,
    syntax_tree,
    words_of,
)
from ..state.facts import StepFacts
from .base import Rule
from .modes import Validation
from .stepping import EmptyStep

_LEAST = 3  # steps or calls
_MOST_KNOWN = 64
_SLOW_NAME = re.compile(r"(?<![a-z])(target|tgt|teacher|ema|old|ref|reference)(?![a-z])")
_SOURCE_NAME = re.compile(r"source|src")  # beside it, "target" is a domain or a language


class FrozenMoves(Rule):
    """What requires no gradient goes on moving: weights by old gradients and momentum, or a BatchNorm's statistics.

    Weights: their values were seen to differ after a step that had no new gradient of theirs, while backward passes
    had reached them before; so nobody has filled ``.grad`` by hand. It may be overlooked only: a warning. Statistics:
    the layer was called in training mode while other parts learn, and its weights were never trained. That may be
    meant, to adapt to new data: a hint.
    """

    OPTIMIZER_PARAMS_FROZEN = EmptyStep.OPTIMIZER_PARAMS_FROZEN.with_(
        severity="warning",
        message="The step changes weights with requires_grad False: their old `.grad` or the optimizer's averages, "
        "momentum or weight decay still move them.",
        fix="Set the `.grad` of these parameters to None when you freeze them, or leave them out of {optimizer}.",
    )
    STATISTICS_MOVE = OPTIMIZER_PARAMS_FROZEN.with_(
        severity="hint",
        message="The weights of a normalization layer are frozen, and it is called in training mode: its running mean "
        "and variance still change.",
        fix="Call eval() on the frozen layers after each train() of the whole model.",
    )

    def _begin(self) -> None:
        self._moved: dict[int, int] = {}  # optimizer -> frozen weights that it has moved
        self._norms: dict[Site, int] = {}  # line that calls a model -> frozen weights of its normalization
        self._turned: dict[int, Site] = {}  # module -> the line that put it into training mode
        self._put: dict[Site, Site] = {}  # line that calls a model -> the line that put it into training mode

    def mode(self, event: Mode) -> None:
        """Remember which line has put a model into training mode."""
        if event.training and len(self._turned) < _MOST_KNOWN:
            self._turned[event.module] = event.site

    def forward(self, event: Forward) -> None:
        """Note calls that move the statistics of frozen layers."""
        if event.frozen_norms and event.grad and (event.site in self._norms or len(self._norms) < _MOST_KNOWN):
            self._norms[event.site] = self._norms.get(event.site, 0) | event.frozen_norms
            self._put[event.site] = self._turned.get(event.module, NO_SITE)
            self.count(event.site)

    def step(self, facts: StepFacts) -> None:
        """Note the weights that moved without a new gradient."""
        old = sum(group.params for group in facts.groups if not group.fresh and not group.edited)
        if moved := facts.step.frozen_moved & old & self.context.state.reached:
            optimizer = facts.step.optimizer
            self._moved[optimizer] = self._moved.get(optimizer, 0) | moved
            self.count(optimizer)

    def end(self, *, normal: bool) -> None:
        """Tell what has moved at least three times."""
        context = self.context
        for optimizer, params in self._moved.items():
            if (steps := self.times[optimizer]) >= _LEAST:
                seen = f"changed in {steps} steps of {context.name(optimizer)}{context.listed(params)}"
                self.report(self.OPTIMIZER_PARAMS_FROZEN, context.state.sites[optimizer], seen, of=optimizer)
        for site, params in self._norms.items():
            frozen = params & ~context.state.reached & ~context.log.index.weights_ever_written(params)
            if frozen == params and self.times[site] >= _LEAST <= sum(context.state.steps.values()):
                seen = f"{number_of(self.times[site], 'call')} in training mode{context.listed(params)}"
                self.report(self.STATISTICS_MOVE, site, seen, cause_at(self._put[site]))


class UncopiedState(Rule):
    """``load_state_dict()`` gets the object's own tensors, which steps have changed since the dictionary was made.

    All tensors that are given lie where the object's own are: to load them changes nothing. That is certain.
    """

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
        """Tell the lines."""
        for site, load in self.context.log.models.uncopied.items():
            seen = f"{number_of(load.times, 'load')} of tensors that are in use; {number_of(load.steps, 'step')} since"
            self.report(self.STATE_DICT_NOT_COPIED, site, seen, partial(_copied, load.made), kind=load.kind)


def _copied(made: Site) -> Edit | Cause | None:
    """Return the edit that copies the tensors of a model's ``state_dict()``; its line if that takes more."""
    calls = [call for call, _ in calls_of(nodes_at(made), "state_dict")]
    place = node_place(made[0], calls[0]) if len(calls) == 1 else None
    if place is None or not place.end_column or re.search("opt|sched|scaler", words_of(place)):
        return cause_at(made)
    return reworded(place, f"{{name: tensor.clone() for name, tensor in {words_of(place)}.items()}}")


class TiedWeights(Rule):
    """A tie of two weights that was lost, or two names for one module: both may be meant, so both are hints."""

    TIED_WEIGHTS = Code(
        "tied-weights",
        "04_zero_grad",
        "Whose parameters?",
        "hint",
        message="Two places of the model shared one weight, and each has another one now: they learn apart.",
        fix="If they are to share it, tie them again below this line: give one place the parameter of the other.",
    )
    ONE_MODULE = TIED_WEIGHTS.with_(
        message="{slow} and {fast} are one module: each step of {fast} moves {slow}, too.",
        fix="If {slow} is to stay behind, make it a copy: copy.deepcopy({fast}).",
    )

    def _begin(self) -> None:
        self._names: dict[int, tuple[str, ...]] = {}  # module -> its names, where one speaks of another network
        self._sites: dict[int, set[Site]] = {}  # the same -> the lines that called it since the last step
        self._together: Counter[tuple[int, frozenset[Site]]] = Counter()

    def forward(self, event: Forward) -> None:
        """Note modules with two names, and the lines that call them."""
        slow = [name for name in event.names if _SLOW_NAME.search(name.lower())]
        if slow and len(slow) < len(event.names) and len(self._names) < _MOST_KNOWN:
            fast = [name for name in event.names if name not in slow]
            if not any(_SOURCE_NAME.search(name.lower()) for name in fast):
                self._names[event.module] = (slow[0], *fast)
        if event.grad and event.module in self._names:
            self._sites.setdefault(event.module, set()).add(event.site)

    def step(self, facts: StepFacts) -> None:
        """Note which lines called it for one update."""
        for module, sites in self._sites.items():
            if len(self._together) < _MOST_KNOWN:
                self._together[module, frozenset(sites)] += 1
        self._sites.clear()

    def end(self, *, normal: bool) -> None:
        """Tell ties that were lost, and modules that were called by both names."""
        reached = self.context.state.reached
        for tie in {id(tie): tie for tie in self.context.log.models.ties.values()}.values():
            if tie.params and all(reached & param for param in tie.params):
                names = self.context.param_names(sum(tie.params))
                self.report(self.TIED_WEIGHTS, tie.site, f"both get gradients: {names}", Cause(*tie.site))
        for (module, sites), updates in self._together.items():
            slow, *fasts = self._names[module]
            site = next((site for site in sorted(sites) if f"{slow}(" in source_line(site)), NO_SITE)
            lines = "".join(map(source_line, sites))
            fast = next((name for name in fasts if re.search(rf"(?<![\w.]){re.escape(name)}\(", lines)), "")
            if updates >= _LEAST and site[1] and fast:
                seen = f"both were called with gradients on for {updates} updates"
                self.report(self.ONE_MODULE, site, seen, _assigned(site, slow), slow=slow, fast=fast)


def _assigned(site: Site, name: str) -> Cause | None:
    """Return the only assignment of a name in a file."""
    made = [node for node in ast.walk(syntax_tree(site[0])) if isinstance(node, ast.Assign)]
    named = [node for node in made if dotted(node.targets[0]) == name]
    return node_place(site[0], named[0].value) if len(named) == 1 else None


class DropoutInEvaluation(Rule):
    """``F.dropout`` without ``training=`` in the forward() of a model that is called in evaluation mode.

    Its default is training=True whatever the mode. To sample with dropout on purpose is possible, so it is a hint.
    """

    VALIDATION_IN_TRAIN_MODE = Validation.VALIDATION_IN_TRAIN_MODE.with_(
        severity="hint",
        message="This dropout works in evaluation mode, too: the function does not know the mode of the model.",
        fix="Give it training=self.training, or use nn.Dropout.",
    )

    def _begin(self) -> None:
        self._stepped = 0

    def step(self, facts: StepFacts) -> None:
        """Note what is trained."""
        self._stepped |= facts.step.params

    def forward(self, event: Forward) -> None:
        """Count the calls in evaluation mode, by the functions with a dropout."""
        for start in event.dropouts if event.params & self._stepped else ():
            self.count(start)

    def end(self, *, normal: bool) -> None:
        """Look for the calls."""
        for (file, line), times in self.times.items():
            nodes = list(ast.walk(function_around((file, line + 1))))
            asked = [
                one for one in nodes if isinstance(one, (ast.If, ast.IfExp)) and "training" in ast.unparse(one.test)
            ]
            guarded = {node for one in asked for node in ast.walk(one)}
            for node in nodes:
                if isinstance(node, ast.Call) and _ignores_mode(node) and node not in guarded:
                    place = node_place(file, node)
                    seen = f"{number_of(times, 'call')} of the model in evaluation mode"
                    edit = partial(reworded, place, f"{words_of(place)[:-1]}, training=self.training)")
                    self.report(self.VALIDATION_IN_TRAIN_MODE, (file, node.lineno), seen, edit)


def _ignores_mode(call: ast.Call) -> bool:
    """Return whether a call is one of F.dropout, or of its like, that says nothing of the mode."""
    owner = dotted(call.func).rpartition(".")[0].rpartition(".")[2]
    drops = called(call) in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout")
    plain = not any(keyword.arg in (None, "training") for keyword in call.keywords) and len(call.args) < 3
    return drops and owner in ("F", "functional") and plain

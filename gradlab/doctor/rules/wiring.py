"""Rules for parameters in no optimizer, in several or without a gradient, and for optimizers made repeatedly."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import partial
from typing import Any

from ..events import MANUAL_UPDATE, NO_SITE, Backward, Site, Step, bit_positions, union_bits
from ..finding import Cause, Code, Edit
from ..source.blocks import loops_around
from ..source.calls import in_scope, updates_by_hand
from ..source.cuts import cut_place
from ..source.syntax import beside, called, called_on, cause_at, node_place, nodes_in, single_or_none
from ..source.wiring import made_from_helper, plain_container, remade_below
from ..state.facts import StepFacts
from .base import Rule, how_many
from .losses import LossFlaws
from .stepping import EmptyStep, in_no_module

_MAX_OPTIMIZERS = 512
_MIN_REMADE = 2  # least number of earlier optimizers for the same parameters
_STATELESS_BY_DESIGN = ("LBFGS",)  # often created anew for each problem on purpose, as in calibration
_MEANT = re.compile(
    r"\b(task|fold|client|phase|stage|round|trial|seed|run|restart|cycle|domain|level|generation|session|worker"
    r"|user|agent|subject|experiment|config|outer|meta|finetune|curriculum|growth)s?(?![a-z])"
)
_TRAINING = re.compile(r"epoch|batch|step|iter|loader")


class OptimizerRemade(Rule):
    """A line that repeatedly makes a new optimizer for the same parameters, in the loop that trains them.

    The line makes at least three optimizers with momentum or averages for the same tensors. Each optimizer takes its
    first step from the weights that the previous one left, so they do not belong to separate tasks or clients.

    Unless each optimizer takes a single step, a line that looks intentional is not reported: its settings differ each
    time, an ``if`` or a loop over tasks, folds or clients is around it, or each optimizer runs for several epochs.
    """

    OPTIMIZER_REMADE = Code(
        "optimizer-remade",
        "06_optimizer_step",
        "Who keeps what",
        "warning",
        message="This line makes a new optimizer for the same parameters again and again, so momentum and running "
        "averages are lost each time.",
        fix="Make the optimizer once, before the loop.",
    )

    def _begin(self) -> None:
        self._settings: dict[Any, set[str]] = {}

    def step(self, facts: StepFacts) -> None:
        step, new = facts.step, self.state.optimizers[facts.step.optimizer]
        if not step.resumes:
            return
        settings = self._settings.setdefault(new.site, set())
        if len(settings) < _MAX_OPTIMIZERS:
            settings.add(new.settings)
        if step.resumes < _MIN_REMADE or new.site == NO_SITE or new.is_custom_class or new.kind in _STATELESS_BY_DESIGN:
            return
        others = len(settings) >= step.resumes  # True if settings differ each time, as in phases of fine-tuning
        alike = [number for number, other in self.state.optimizers.items() if other.site == new.site]
        several = any(self.state.steps.get(number, 0) > 1 for number in alike)
        if several and _meant(new.lines, step.lines, others=others):
            return
        proof = f"{step.resumes + 1} {new.kind} optimizers ({new.settings.partition(', ')[0]}) over the same "
        proof += f"{how_many(step.params)}, the last before backward pass {self.state.newest}"
        self.report(self.OPTIMIZER_REMADE, new.site, proof, cause_at(new.site))


def _meant(new: tuple[Any, ...], stepped: tuple[Any, ...], *, others: bool) -> bool:
    """Return whether the loops around the creation and the step suggest that new optimizers are intentional."""
    loops = loops_around(new)
    if not loops or loops[0].conditional or (others and not _TRAINING.search(loops[0].text.lower())):
        return True
    if _MEANT.search(f"{loops[0].text} {loops[0].through}".lower().replace("_", " ")):
        return True
    return len([loop for loop in loops_around(stepped) if loop not in loops]) >= 2  # each optimizer runs several epochs


class SharedParams(Rule):
    """Two optimizers that share parameters and take turns in stepping them.

    The severity is "warning" if a whole network gets gradients but is in no optimizer, since one of the two optimizers
    then holds the wrong network. It is "hint" if both hold exactly the same parameters, which may be intentional, as in
    an adversarial autoencoder. Other overlaps and custom optimizer classes, such as SAM, are not reported.
    """

    PARAMS_IN_TWO_OPTIMIZERS = Code(
        "params-in-two-optimizers",
        "06_optimizer_step",
        severity="hint",
        message="{optimizer} and {other} hold the same parameters and take turns stepping them.",
        fix="If this is not intentional, keep one of the two optimizers.",
    )
    WRONG_NET = PARAMS_IN_TWO_OPTIMIZERS.with_(
        severity="warning",
        message="{optimizer} and {other} hold the same parameters; {net}, which gets gradients from the losses of "
        "{optimizer}, is in no optimizer and never learns.",
        fix="Give {optimizer} the parameters of {net} instead.",
    )

    def _begin(self) -> None:
        self._last_turn: dict[int, int] = {}  # optimizer -> position of its last step among all steps
        self._turns: Counter[tuple[int, int]] = Counter()  # (optimizer, optimizer that stepped after it) -> count
        self._reached: Counter[int] = Counter()  # optimizer -> parameters that the passes of its steps added to

    def step(self, facts: StepFacts) -> None:
        number, params_of = facts.step.optimizer, self.state.params_of
        before = self._last_turn.get(number, 0)
        for other, at_step in self._last_turn.items():
            if at_step > before and params_of[other] & facts.step.params:
                self._turns[other, number] += 1
        self._last_turn[number] = max(self._last_turn.values(), default=0) + 1
        self._reached[number] |= union_bits(backward.added for backward in facts.fresh)

    def end(self, *, normal: bool) -> None:
        context, state = self.context, self.state
        alike = {number for number, new in state.optimizers.items() if not new.is_custom_class}
        for (first, second), turns in self._turns.items():
            if not {first, second} <= alike or min(turns, self._turns[second, first]) < 2:
                continue
            sites = {state.optimizers[each].site for each in (first, second)}
            remade = sites & {site for name, site in context.findings if name == OptimizerRemade.OPTIMIZER_REMADE.name}
            same = state.params_of[first] & state.params_of[second]
            left = context.never_moved(self._reached[second]) if same else 0
            net = context.part_name(left)
            if net and context.whole_models(left):
                self._say(self.WRONG_NET, second, first, net)
            elif first < second and state.params_of[first] == state.params_of[second] and not remade:
                self._say(self.PARAMS_IN_TWO_OPTIMIZERS, second, first, net)

    def _say(self, code: Code, optimizer: int, other: int, net: str) -> None:
        state, first, second = self.state, self.context.full_name(optimizer), self.context.full_name(other)
        params, edit = state.params_of[optimizer], cause_at(state.optimizers[optimizer].site)
        shared = (params & state.params_of[other]).bit_count()
        proof = f"{first} shares {shared} of its {how_many(params)} with {second}; "
        proof += f"they took {state.steps.get(optimizer, 0)} and {state.steps.get(other, 0)} steps"
        site = self.context.made_at(optimizer, state.last[optimizer].step.site)
        self.report(code, site, proof, edit, optimizer=first, other=second, net=net)


class MissingParams(Rule):
    """Parameters that get gradients and are in no optimizer, while others of the same loss are stepped.

    The severity is "warning" for layers in a plain list, parameters made after the optimizer, layers closer to the loss
    than all stepped layers, and whole networks that are separate from the stepped networks, such as a critic, or whose
    own loss no step uses. It is "hint" for all other parameters, which may be left out intentionally.
    """

    PARAMS_MISSING_FROM_OPTIMIZER = Code(
        "params-missing-from-optimizer",
        "04_zero_grad",
        "Whose parameters?",
        severity="warning",
        message="Some parameters get gradients and are in no optimizer, so they never learn.",
        fix="Also give these parameters to {optimizer}.",
    )
    IN_PLAIN_LIST = PARAMS_MISSING_FROM_OPTIMIZER.with_(
        fix="Keep the layers in an nn.ModuleList or nn.ModuleDict: parameters() does not look into a plain list or "
        "dictionary."
    )
    OWN_LOSS_UNUSED = PARAMS_MISSING_FROM_OPTIMIZER.with_(
        fix="Make an optimizer for these parameters, and step it after their own loss."
    )
    MEANT_SO = PARAMS_MISSING_FROM_OPTIMIZER.with_(
        severity="hint",
        fix="Also give these parameters to {optimizer}, or freeze them with requires_grad_(False) if they should not "
        "change.",
    )
    MOVED_BY_HAND = PARAMS_MISSING_FROM_OPTIMIZER.with_(
        severity="hint",
        message="Some parameters get gradients that no optimizer uses, and other lines write to them.",
        fix="If they follow another net, as those of a target network do, compute its output under torch.no_grad().",
    )
    HIDDEN = PARAMS_MISSING_FROM_OPTIMIZER.with_(
        message="A Parameter gets gradients, and no variable of yours holds it: nn.Parameter(...).to(...) gives the "
        "result of a computation, so neither the model nor an optimizer has the Parameter itself.",
        fix="Move the tensor first: nn.Parameter(tensor.to(device)).",
    )
    OPTIMIZER_HOLDS_STALE_PARAMS = EmptyStep.OPTIMIZER_HOLDS_STALE_PARAMS.with_(
        message="The optimizer holds parameters that the model no longer has, and not those that took their place."
    )

    def _begin(self) -> None:
        self._step: dict[int, Step] = {}  # parameters in no optimizer -> last step with a pass that reached them
        self._first: dict[int, int] = {}  # parameters in no optimizer -> number of the first pass that reached them
        self._late: dict[int, Site | None] = {}  # parameters -> line that registered them after the optimizer, or None
        self._by_hand = False  # True if other code changed gradients, for example by copying them between models
        self._moved = 0  # parameters whose weights were written to, including through .data

    def step(self, facts: StepFacts) -> None:
        """Record the parameters that got gradients from this step's backward passes but belong to no optimizer."""
        self._by_hand = self._by_hand or facts.edited
        for backward in facts.fresh:
            if missing := backward.added & ~self.state.covered:
                if missing not in self.times:  # looked up now, since the model may be freed before the watch ends
                    self._late[missing] = self.log.models.registered_after(missing, facts.step.optimizer)
                    self._first[missing] = backward.number
                self._step[missing] = facts.step
                times = self.count(missing)
                # In a loop without optimizers, the listener for backward passes compares the weights itself.
                if times & (times - 1) == 0 and facts.step.optimizer != MANUAL_UPDATE:
                    self._moved |= self.log.index.weights_changed()

    def end(self, *, normal: bool) -> None:
        if self.context.has_finding(SharedParams.PARAMS_IN_TWO_OPTIMIZERS):
            return  # another finding gives the reason: an optimizer holds the wrong network
        self._moved |= self.log.index.weights_changed() if self.times else 0
        for params, times in self.times.items():
            missing = self.context.never_moved(params)
            if times >= 3 and missing:
                self._judge(missing, times, self._step[params], self._first[params])
        self._judge_own_losses()

    def _judge_own_losses(self) -> None:
        """Report whole networks, such as a critic without an optimizer, if no step uses gradients of their own loss."""
        if self._by_hand or self.context.has_finding(self.OPTIMIZER_HOLDS_STALE_PARAMS):
            return
        by_path: defaultdict[int, list[Backward]] = defaultdict(list)
        for backward in self.state.first_passes if any(self.state.step_calls.values()) else ():
            if not (backward.has_grads or backward.create):
                by_path[backward.call_path].append(backward)
        for passes in by_path.values():
            newest = passes[-1]
            is_used = any(backward.stepped_params or backward.skipped_by_scaler for backward in passes)
            if len(passes) < 3 or is_used or updates_by_hand(newest.site) != newest.site:
                continue
            missing = self.context.never_moved(newest.added)
            if self.context.whole_models(missing):
                created = (optimizer.site for optimizer in self.state.optimizers.values() if optimizer.site != NO_SITE)
                new = next(created, newest.site)
                self._say(self.OWN_LOSS_UNUSED, missing, len(passes), new, Cause(*new, insert="below"))

    def _judge(self, missing: int, times: int, step: Step, first: int) -> None:
        models, order = self.log.models.all(), self.log.models.order
        registered = union_bits(model.params for model in models)
        same = any(model.params & missing and model.params & step.params for model in models)
        stray = missing & ~registered  # in no registered module, such as layers in a plain Python list
        near = [order[n] for n in bit_positions(missing) if n in order]
        stepped = [order[n] for n in bit_positions(step.params) if n in order]
        both = bool(near and stepped)
        # A backbone, or all weights except biases, may be left out on purpose, but not a head after all stepped layers.
        downstream = both and min(near) < min(stepped) and max(near) <= min(stepped)
        trained = missing & self.state.training == missing
        # A critic, for example, is separate: neither it nor the stepped networks get an input that requires a gradient.
        apart = not (missing | step.params) & self.state.given_outputs and step.params & registered == step.params
        critic = both and trained and self.context.whole_models(missing) == missing and apart
        late = next((site for params, site in self._late.items() if params & missing and site), None)
        module = step.params & registered and trained
        if self._stale(step, late, first):
            return
        new, optimizer = self.state.optimizers[step.optimizer].site, step.optimizer
        files, name = self.log.files(), self.context.param_names(missing, 1)
        site = self.context.made_at(optimizer, step.site)
        where = late or (NO_SITE if made_from_helper(new) else new)
        if missing & self._moved:
            self._say(self.MOVED_BY_HAND, missing, times, site, None)
        elif stray and "[" in name and (container := plain_container(files, name)) is not None:
            self._say(self.IN_PLAIN_LIST, missing, times, site, container)
        elif stray and not late and not self.context.all_names(missing):
            calls = [pair for pair in nodes_in(files) if called(called_on(pair[1])) == "Parameter"]
            cause = single_or_none(node_place(*pair) for pair in calls)
            self._say(self.HIDDEN, missing, times, site, cause)
        elif stray or late or ((same or module) and downstream) or critic:
            edit = self._add_group(missing, optimizer, where)
            self._say(self.PARAMS_MISSING_FROM_OPTIMIZER, missing, times, site, edit, optimizer)
        elif not self.context.has_finding(LossFlaws.LOSS_TERM_DETACHED):  # otherwise a detached term is the reason
            self._say(self.MEANT_SO, missing, times, site, cause_at(where), optimizer)

    def _add_group(self, missing: int, optimizer: int, site: Site) -> Edit | Cause | None:
        """Return the edit that inserts an ``add_param_group`` call for a module's parameters below ``site``.

        Return only the location of ``site``, or None for NO_SITE, if the optimizer or the module is not in scope there.
        """
        name, module = self.context.variable(optimizer), self.context.module_name(missing)
        if not in_scope(name, site) or not in_scope(module, site):
            return cause_at(site)
        return beside(site, "below", f'{name}.add_param_group({{"params": {module}.parameters()}})')

    def _say(self, code: Code, missing: int, times: int, site: Site, edit: Edit | Cause | None, of: int = -1) -> None:
        proof = f"{times} backward passes reached {how_many(missing)} without an optimizer"
        self.report(code, site, proof + self.context.listed(missing), edit, of=of)

    def _stale(self, step: Step, late: Site | None, first: int) -> bool:
        """Return whether the optimizer holds parameters replaced in the model before pass ``first``; report it."""
        models = self.log.models.all()
        registered = union_bits(model.params for model in models if model.params & step.params)
        gone = step.params & ~registered
        numbers = [entry.backward.number for group in self.state.groups(gone) for entry in group.passes]
        if not registered or not gone or max(numbers, default=0) >= first:
            return False
        site = self.context.made_at(step.optimizer, step.site)
        proof = in_no_module(gone, f"{how_many(step.params)} of {self.context.name(step.optimizer)}")
        edit = partial(remade_below, site, late) if late else None
        self.report(self.OPTIMIZER_HOLDS_STALE_PARAMS, site, proof, edit, of=step.optimizer)
        return True


class ModulesWithoutGradient(Rule):
    """Some parameters of an optimizer never get a gradient, because a call cuts the graph between them and the loss."""

    GRAPH_BROKEN = EmptyStep.GRAPH_BROKEN.with_(
        severity="hint",
        message="Some of the optimizer's parameters never get a gradient: the graph between them and the loss is cut.",
        fix="Take out what cuts the graph between these parameters and the loss, or leave them out of {optimizer}.",
    )

    def end(self, *, normal: bool) -> None:
        if self.state.newest < 5 or self.context.has_finding(EmptyStep.OPTIMIZER_HOLDS_STALE_PARAMS):
            return
        context, state, index = self.context, self.state, self.log.index
        for optimizer, params in state.params_of.items():
            never = params & ~state.reached
            never &= ~(index.frozen(never) | index.weights_ever_written(never))  # not those frozen or written to
            cut = cut_place(cut for cut in state.cuts if cut.lost & never)
            if cut is not None and never != params and state.steps.get(optimizer):
                proof = f"{never.bit_count()} of {params.bit_count()} parameters of {context.name(optimizer)} in "
                proof += f"{state.newest} backward passes{context.listed(never)}"
                self.report(self.GRAPH_BROKEN, state.newest_site, proof, cut, of=optimizer)

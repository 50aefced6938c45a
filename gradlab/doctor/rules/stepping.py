"""Rules for steps without a gradient to apply, and for loops that never step."""

from __future__ import annotations

from collections import defaultdict, deque
from functools import partial
from itertools import pairwise

from ..events import NO_SITE, Site, union_bits
from ..finding import Cause, Code, Edit
from ..graphs.op_trace import TAKES_NUMBERS
from ..source.calls import (
    clears_by_hand,
    in_scope,
    loss_above,
    mentions_call,
    never_reached,
    updates_by_hand,
    without_brackets,
    wrong_step,
)
from ..source.cuts import cut_place
from ..source.syntax import beside, cause_at
from ..source.wiring import frozen_by, remade_below
from ..state.facts import StepFacts
from .base import EditLike, Rule, how_many, numbered

_MIN_STEPS = 4  # least number of steps of an optimizer that never had a gradient
_REGULAR_CLEARINGS = 5  # empty steps at equal intervals, as when code logs gradients and clears them every 10 updates


class EmptyStep(Rule):
    """A step finds no new gradient: it was cleared or not computed, or parameters are frozen, replaced or cut off."""

    ZERO_GRAD_BETWEEN_BACKWARD_AND_STEP = Code(
        "zero-grad-between-backward-and-step",
        "04_zero_grad",
        "Twenty-four orders",
        message="The gradients are cleared after backward() and before step(), so the step has nothing to apply.",
        fix="Move this line above backward(), or below step().",
    )
    OPTIMIZER_PARAMS_FROZEN = Code(
        "optimizer-params-frozen",
        "04_zero_grad",
        "Whose parameters?",
        message="None of this optimizer's parameters requires a gradient: its steps change nothing.",
        fix="Call requires_grad_(True) on the parameters that are to learn, before the forward pass.",
    )
    STEP_WITHOUT_BACKWARD = Code(
        "step-without-backward",
        "06_optimizer_step",
        "Who moves the weights",
        message="step() is called, but no backward() has put anything into its parameters' `.grad` since the last.",
        fix="Call backward() on the loss of these parameters before the step.",
    )
    NEVER_ANY = STEP_WITHOUT_BACKWARD.with_(
        message="No parameter of this optimizer has had a gradient in any of its steps, so they have changed nothing.",
        fix="Compute the loss from these parameters themselves, and not from copies of them or from their data.",
    )
    OPTIMIZER_HOLDS_STALE_PARAMS = Code(
        "optimizer-holds-stale-params",
        "04_zero_grad",
        "Whose parameters?",
        message="The optimizer holds parameters that the model no longer has: backward() fills other ones.",
        fix="Make {optimizer} after the model has its final parts.",
    )
    GRAPH_BROKEN = Code(
        "graph-broken",
        "01_autograd",
        "Cutting the graph",
        message="backward() runs, but reaches none of the optimizer's parameters: the graph between them is cut.",
        fix="Compute the loss from the model's own output, without .detach(), .data, .item(), torch.tensor() or "
        "no_grad() on the way.",
    )

    def _begin(self) -> None:
        self._explained: set[int] = set()  # optimizers whose empty steps were reported with a reason
        self._wiped_steps: defaultdict[int, deque[int]] = defaultdict(lambda: deque(maxlen=_REGULAR_CLEARINGS))

    def step(self, facts: StepFacts) -> None:
        step, since = facts.step, facts.since
        if facts.edited or step.backward or any(entry.used_by != step.optimizer for entry in facts.passes):
            return
        empty = not facts.passes  # if False, the optimizer has already applied all passes in its gradients
        if empty and step.present and (step.norms is None or any(map(float, step.norms))):
            return  # gradients were written to without a change of the version counter, for example through .data
        if empty and since.clearings:
            self._wiped(facts)
        elif empty and step.frozen and step.frozen == step.params:
            self._frozen(facts)
        elif since.others > 0 and not since.backwards:
            self._unreached(facts)
        elif empty and not since.backwards:
            self._without(facts)

    def end(self, *, normal: bool) -> None:
        """Report optimizers whose steps never had a gradient, unless the reason was already reported."""
        for optimizer, steps in self.state.steps.items():
            explained = optimizer in self.state.fed or optimizer in self._explained
            if steps >= _MIN_STEPS and not explained and not self.state.optimizers[optimizer].is_custom_class:
                reached = self.state.reached & ~self.state.params_of[optimizer]
                proof = f"{steps} of {steps} steps of {self.context.name(optimizer)}"
                proof += f"; backward() reached {how_many(reached)} of others" if reached else ""
                proof += self.context.listed(self.state.params_of[optimizer])
                self.report(self.NEVER_ANY, self.state.last[optimizer].step.site, proof)

    def _repeats(self, code: str, facts: StepFacts) -> int:
        """Count a step that was empty for the reason ``code``; return the count, or 0 while such steps are too rare."""
        times = self.count((code, facts.step.optimizer))
        return times if times >= 2 and 2 * times >= facts.number else 0

    def _explain(self, code: Code, optimizer: int, site: Site, proof: str, edit: EditLike) -> None:
        self._explained.add(optimizer)
        self.report(code, site, proof, edit, of=optimizer)

    def _wiped(self, facts: StepFacts) -> None:
        optimizer, clear = facts.step.optimizer, facts.since.clearings[-1]
        wiped = self._wiped_steps[optimizer]
        wiped.append(facts.number)
        regular = len(wiped) == _REGULAR_CLEARINGS and len({later - earlier for earlier, later in pairwise(wiped)}) == 1
        if self._repeats("wiped", facts) or regular:  # otherwise the loop may clear only non-finite gradients
            site = clear.site if clear.site != NO_SITE else clears_by_hand(facts.step.site)
            proof = f"update {facts.number} came after {numbered(clear.lost)} had been cleared"
            proof += f"; {self.times['wiped', optimizer]} updates found no gradient"
            self._explain(self.ZERO_GRAD_BETWEEN_BACKWARD_AND_STEP, optimizer, site, proof, cause_at(clear.site))

    def _frozen(self, facts: StepFacts) -> None:
        if times := self._repeats("frozen", facts):
            context, optimizer, params = self.context, facts.step.optimizer, facts.step.params
            name, site = context.name(optimizer), context.made_at(optimizer, facts.step.site)
            proof = f"{times} steps of {name}, and requires_grad=False for all of its {how_many(params)}"
            edit = lambda: frozen_by(context.log.files(), context.all_names(params))  # noqa: E731 - a look-up
            self._explain(self.OPTIMIZER_PARAMS_FROZEN, optimizer, site, proof, edit)

    def _without(self, facts: StepFacts) -> None:
        optimizer, site = facts.step.optimizer, facts.step.site
        if self.state.optimizers[optimizer].is_custom_class:
            return  # a custom optimizer may need no gradients, as in weight averaging or gradient-free search
        if times := self._repeats("without", facts):
            proof = f"{times} of {facts.number} steps of {self.context.name(optimizer)} found no gradient"
            missing = partial(self._missing, site, scaled=facts.step.scaler)
            self._explain(self.STEP_WITHOUT_BACKWARD, optimizer, site, proof, missing)

    def _missing(self, step: Site, *, scaled: bool) -> Edit | Cause | None:
        """Return the edit or location for a missing ``loss.backward()`` or for its missing parentheses, or None."""
        if named := without_brackets([step[0]], "backward"):
            return named
        if mentions_call(step, "backward") or self.log.passes.grad_calls:
            return None  # backward() exists, but is not reached or belongs to another loss
        loss = loss_above(step)
        return beside(step, "above", f"{loss}.backward()") if loss and not scaled else Cause(*step, insert="above")

    def _unreached(self, facts: StepFacts) -> None:
        if facts.since.after:
            self._without(facts)  # a model was called after the newest pass, which belongs to another loss
            return
        if not (times := self._repeats("unreached", facts)):
            return
        optimizer, called, params = facts.step.optimizer, facts.since.called, facts.step.params
        stale = params & ~called if called & facts.since.elsewhere else 0
        newest = self.state.newest_site if self.state.newest_site != NO_SITE else facts.step.site
        if not stale and not called & params:
            return  # the optimizer's model was not called, so the optimizer is only pausing
        if not stale:
            proof = f"{times} steps of {self.context.name(optimizer)} found no gradient after a backward pass"
            cuts = [cut for cut in self.state.cuts if cut.lost & params or cut.name in TAKES_NUMBERS]
            self._explain(self.GRAPH_BROKEN, optimizer, newest, proof, partial(cut_place, cuts))
        elif updates_by_hand(newest) == newest:  # otherwise the learner's code updates weights without an optimizer
            late = self.log.models.registered_after(called & facts.since.elsewhere, optimizer)
            proof = f"{times} steps found no gradient; {in_no_module(stale, how_many(params))}"
            site = self.context.made_at(optimizer, facts.step.site)
            edit = partial(remade_below, site, late) if late else None
            self._explain(self.OPTIMIZER_HOLDS_STALE_PARAMS, optimizer, site, proof, edit)


def in_no_module(stale: int, total: str) -> str:
    """Return a clause with the number of parameters in ``stale``: "2 of 6 parameters belong to no module that runs"."""
    return f"{stale.bit_count()} of {total} {'belongs' if stale.bit_count() == 1 else 'belong'} to no module that runs"


class NeverSteps(Rule):
    """Gradients are computed, but the optimizer never steps."""

    NEVER_STEPS = Code(
        "never-steps",
        "06_optimizer_step",
        "Who moves the weights",
        message="backward() computes gradients, but no step() ever applies them: the weights stay as they are.",
        fix="Call {optimizer}.step() after backward(), in every update.",
    )

    def end(self, *, normal: bool) -> None:
        state, index = self.state, self.log.index
        if state.newest < 4:
            return
        stepped = union_bits(state.params_of[optimizer] for optimizer in state.steps | state.step_calls)
        for optimizer, params in state.params_of.items():
            passes = [backward for backward in state.first_passes if backward.added & params]
            if not params & stepped and len(passes) >= 3 and not index.weights_ever_written(params):
                unused = [backward for backward in passes if not backward.stepped_params] or passes
                site, edit = self._edit(optimizer, [backward.site for backward in unused], scaled=unused[-1].scaled)
                proof = f"{state.newest} backward passes, 0 steps of {self.context.name(optimizer)}"
                self.report(self.NEVER_STEPS, site, proof, edit, of=optimizer)

    def _edit(self, optimizer: int, backwards: list[Site], *, scaled: bool) -> tuple[Site, Edit | Cause | None]:
        """Return the line to report, and the edit or location for a missing, unreached or wrong ``step()``, or None."""
        log, site, names_of = self.log, backwards[-1], self.log.names.optimizers
        files, name, names = log.files(), self.context.variable(optimizer), names_of.get(optimizer, [])
        if not names:
            return site, None
        if named := without_brackets(files, "step", names):
            return site, named
        if condition := never_reached(files, "step", log.callers, names):
            return site, condition
        others = [name for number, names in names_of.items() for name in names if number != optimizer]
        for backward in set(backwards) if others else ():
            if in_scope(name, backward) and (wrong := wrong_step(backward, name, others)):
                return backward, wrong
        missing = len(set(backwards)) == 1 and not scaled and in_scope(name, site)
        return site, beside(site, "below", f"{name}.step()") if missing else None

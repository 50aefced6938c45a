"""Steps that find nothing to apply, and loops that never take one."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from ...formatting import number_of
from ..events import NO_SITE, Site
from ..finding import Cause, Code
from ..source.calls import never_reached, without_brackets
from ..source.cuts import cut_before
from ..source.grad_lines import clears_by_hand
from ..source.syntax import at
from ..source.wiring import frozen_by
from ..state.grad_groups import StepFacts
from .base import Rule, RuleContext, numbered

_PASSES = 32  # kept to say where: WGAN runs five passes of the critic for each of the generator

CLEARED_BEFORE_STEP = "The gradients are cleared after backward() and before step(), so the step has nothing to apply."


class EmptyStep(Rule):
    """A step finds no gradient at all: says why."""

    ZERO_GRAD_BETWEEN_BACKWARD_AND_STEP = Code(
        "zero-grad-between-backward-and-step", "04_zero_grad", "Twenty-four orders"
    )
    OPTIMIZER_PARAMS_FROZEN = Code("optimizer-params-frozen", "04_zero_grad", "Whose parameters?")
    STEP_WITHOUT_BACKWARD = Code("step-without-backward", "06_optimizer_step", "Who moves the weights")
    OPTIMIZER_HOLDS_STALE_PARAMS = Code("optimizer-holds-stale-params", "04_zero_grad", "Whose parameters?")
    GRAPH_BROKEN = Code("graph-broken", "01_autograd", "Cutting the graph")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._times: Counter[Any] = Counter()
        self._steps: Counter[int] = Counter()

    def step(self, facts: StepFacts) -> None:
        """Look for the reason in what has happened since the last step."""
        optimizer = facts.step.optimizer
        self._steps[optimizer] += 1
        if facts.edited or facts.step.backward or any(held.used_by != optimizer for held in facts.held):
            return
        if facts.held:  # all of it applied before
            if facts.since.others > 0 and not facts.since.backwards:
                self._unreached(facts)
            return
        if facts.step.present and (facts.step.norms is None or any(float(norm) for norm in facts.step.norms)):
            return  # somebody has filled the gradients in a way that no version tells of, as through .data
        wiped = [cleared for cleared in facts.since.clearings if cleared.lost]
        if wiped:
            self._wiped(facts, wiped)
        elif facts.step.frozen and facts.step.frozen == facts.step.params:
            self._frozen(facts)
        elif facts.since.others > 0 and not facts.since.backwards:
            self._unreached(facts)
        elif not facts.since.backwards:
            self._without(facts)

    def _repeats(self, code: str, facts: StepFacts) -> int:
        """Count; return how often if that is often enough to speak, else 0."""
        key = code, facts.step.optimizer
        self._times[key] += 1
        often = self._times[key] >= 2 and 2 * self._times[key] >= self._steps[facts.step.optimizer]
        return self._times[key] if often else 0

    def _wiped(self, facts: StepFacts, clearings: list[Any]) -> None:
        clear, lost = clearings[-1].clear, clearings[-1].lost
        if times := self._repeats("wiped", facts):
            self.report_as(
                self.ZERO_GRAD_BETWEEN_BACKWARD_AND_STEP,
                "error",
                clear.site if clear.site != NO_SITE else clears_by_hand(facts.step.site),
                CLEARED_BEFORE_STEP,
                f"{numbered(lost)} was cleared before update {facts.number}; {times} updates found no gradient",
                f"{self._variable(facts)}.zero_grad()  # move it above loss.backward(), or below step()",
            )

    def _frozen(self, facts: StepFacts) -> None:
        if times := self._repeats("frozen", facts):
            made = self.context.state.optimizers[facts.step.optimizer].site
            self.report_as(
                self.OPTIMIZER_PARAMS_FROZEN,
                "error",
                made if made != NO_SITE else facts.step.site,
                "None of this optimizer's parameters requires a gradient: its steps change nothing.",
                f"{times} steps of {self.context.name(facts.step.optimizer)}, and requires_grad=False for all of its "
                f"{number_of(facts.step.params.bit_count(), 'parameter')}",
                "p.requires_grad_(True)  # for the parameters that should learn",
                lambda: frozen_by(self.context.log.files(), self.context.all_names(facts.step.params)),
            )

    def _without(self, facts: StepFacts) -> None:
        if self.context.state.optimizers[facts.step.optimizer].own:
            return  # it may need no gradients: an average of weights, a search without them
        if times := self._repeats("without", facts):
            self.report_as(
                self.STEP_WITHOUT_BACKWARD,
                "error",
                facts.step.site,
                "step() is called, but no backward() has put anything into its parameters' `.grad` since the last.",
                f"{times} of {self._steps[facts.step.optimizer]} steps of "
                f"{self.context.name(facts.step.optimizer)} found no gradient",
                f"loss.backward()  # before {self._variable(facts)}.step()",
                lambda: self._missing(facts, "backward"),
            )

    def _missing(self, facts: StepFacts, method: str) -> Cause | None:
        log = self.context.log
        files = log.files()
        return without_brackets(files, method) or never_reached(files, method, log.callers) or Cause(*facts.step.site)

    def _variable(self, facts: StepFacts) -> str:
        return self.context.variable(facts.step.optimizer)

    def _unreached(self, facts: StepFacts) -> None:
        if facts.since.after:
            self._without(facts)  # the passes were of another loss: this one has been computed, and that is all
            return
        times = self._repeats("unreached", facts)
        if not times:
            return
        made = self.context.state.optimizers[facts.step.optimizer].site
        called, params = facts.since.called, facts.step.params
        strangers = (params & ~called).bit_count() if called & facts.since.elsewhere else 0
        if not strangers and not called & params:
            return  # its model was not even called: this optimizer has a rest
        site = made if made != NO_SITE else facts.step.site
        if strangers:
            self.report_as(
                self.OPTIMIZER_HOLDS_STALE_PARAMS,
                "error",
                site,
                "The optimizer holds parameters that the model no longer has: backward() fills other ones.",
                f"{times} steps found no gradient; {strangers} of "
                f"{number_of(facts.step.params.bit_count(), 'parameter')} {'belongs' if strangers == 1 else 'belong'} "
                "to no module that runs",
                "optimizer = ...(model.parameters())  # make it after the model has its final parts",
                at(
                    self.context.log.models.registered_after(called & facts.since.elsewhere, facts.step.optimizer)
                    or NO_SITE
                ),
            )
            return
        newest = self._newest if self._newest != NO_SITE else facts.step.site
        self.report_as(
            self.GRAPH_BROKEN,
            "error",
            newest,
            "backward() runs, but reaches none of the optimizer's parameters: the graph between them is cut.",
            f"{times} steps of {self.context.name(facts.step.optimizer)} found no gradient after a backward pass",
            "# take out .detach(), .data, .item(), .numpy(), torch.tensor(...) or no_grad() between model and loss",
            lambda: cut_before(self.context.log.path(newest)),
        )

    _newest = NO_SITE

    def backward(self, backward: Any) -> None:
        """Remember the newest line."""
        self._newest = backward.site


class NeverSteps(Rule):
    """Gradients are computed, and no step is ever taken."""

    NEVER_STEPS = Code("never-steps", "06_optimizer_step", "Who moves the weights")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._passes: list[Any] = []
        self._count = 0

    def accumulate(self, added: Any) -> None:
        """Count the passes; the first few are enough to say where, also of a net that is trained less often."""
        self._count += 1
        if len(self._passes) < _PASSES:
            self._passes.append(added.backward)

    def end(self, *, normal: bool) -> None:
        """Is there an optimizer that was never used, although its parameters got gradients?"""
        state, index = self.context.state, self.context.log.index
        if self._count < 4:
            return
        stepped = 0
        for optimizer in state.steps | state.step_calls:
            stepped |= state.params_of[optimizer]
        for optimizer, params in state.params_of.items():
            passes = [one for one in self._passes if one.added & params]
            idle = not state.step_calls.get(optimizer) and not state.steps.get(optimizer) and not params & stepped
            if idle and len(passes) >= 3 and not index.weights_ever_written(params):
                own = [one for one in passes if not one.used] or passes  # not those that another optimizer has used
                self.report_as(
                    self.NEVER_STEPS,
                    "error",
                    own[-1].site,
                    "backward() computes gradients, but no step() ever applies them: the weights stay as they are.",
                    f"{self._count} backward passes, 0 steps of {self.context.name(optimizer)}",
                    f"{self.context.variable(optimizer)}.step()  # after loss.backward()",
                    partial(self._cause, own[-1].site),
                )

    def _cause(self, backward: Site) -> Cause | None:
        log = self.context.log
        files = log.files()
        return without_brackets(files, "step") or never_reached(files, "step", log.callers) or Cause(*backward)

"""Backward passes that only explore, as those of SAM and of attacks, and whose gradients get into the step."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from ..finding import Cause, Code
from ..source.grad_lines import first_step_between, reads_gradient_of_an_input
from ..state.grad_groups import StepFacts, unique_sorted
from .base import Rule, RuleContext, numbered

_CALLERS = 3  # lines that are looked at: the pass, and those that have led to it


class SamGradientsKept(Rule):
    """Sharpness-aware minimisation whose second pass adds to the gradients of the first.

    How it is known: of the passes that a step applies, the first ran at the weights that the last step has left; then
    something other than an optimizer's step moved the weights (told from a few parameters, nearly all of which have
    changed); and a second pass added its gradients without a clearing between.

    How sure: that both gradients are in the step is proven. Sums that are meant look different: they move one layer
    only (FGM on embeddings), draw other weights for the first pass, too (noise on weights), write to `.grad` between
    the passes, or weigh the losses; all of these are left alone. So it is very likely a mistake: a warning, after two
    such steps.
    """

    SAM_GRADIENTS_KEPT = Code("sam-gradients-kept", "04_zero_grad")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._times: Counter[Any] = Counter()

    def step(self, facts: StepFacts) -> None:
        """Look for weights that were moved between the passes of this step."""
        if facts.edited or len(facts.held) < 2:
            return
        sampled = self.context.log.weight_marks.sampled & facts.step.present
        passes = self._passes(facts)
        if len(passes) < 2 or not sampled or passes[0].moved & sampled or any(one.weighted for one in passes):
            return
        moved = [one for one in passes[1:] if 2 * (one.moved & sampled).bit_count() > sampled.bit_count()]
        if not moved or any(one.moved & sampled for one in passes if one not in moved):
            return
        self._times[facts.step.site] += 1
        if (times := self._times[facts.step.site]) >= 2:
            second = moved[0]
            first = [one for one in passes if one.number < second.number]
            after = [one for one in passes if one.number >= second.number]
            self.report_as(
                self.SAM_GRADIENTS_KEPT,
                "warning",
                facts.step.site,
                "The step applies the gradients at the original weights and those at the moved weights together, "
                "because nothing clears `.grad` between the two passes of SAM.",
                f"update {facts.number} of {self.context.name(facts.step.optimizer)} applied {numbered(first)} and, "
                f"after the weights had been moved, {numbered(after)}; {times} times",
                f"{self.context.variable(facts.step.optimizer)}.zero_grad()  # after the weights are moved, before the "
                "second backward()",
                partial(self._place, first[-1].site, second.site),
            )

    def _place(self, first: Any, second: Any) -> Cause:
        """Return the first step that keeps the gradients, or else the pass before which they should be cleared."""
        line = first_step_between(first, second)
        return Cause(first[0], line) if line else Cause(*second)

    def _passes(self, facts: StepFacts) -> list[Any]:
        """Return the passes that this step uses first; an optimizer that has called this one counts as the same."""
        optimizers, steps = self.context.state.optimizers, self.context.state.steps
        return unique_sorted(
            [
                held.backward
                for held in facts.held
                if held.used_by < 0
                or (
                    held.used_by != facts.step.optimizer
                    and optimizers[held.used_by].own
                    and held.backward.during == steps.get(held.used_by)
                )
            ]
        )


class AttackGradients(Rule):
    """A step that applies the gradients of a pass which was made to attack the input.

    How it is known: of the passes that a step applies, one gave a gradient to a tensor that is no parameter, such as an
    input or a perturbation, and the function around it reads that tensor's `.grad`; another one, for the training loss,
    did not; nothing cleared or edited `.grad` between them.

    How sure: that the attack's gradients are in the step is proven. Where they are meant to be, every pass of the step
    is an attack (free adversarial training, FreeLB) or the losses are weighted: these are left alone. A warning, after
    two such steps.
    """

    ATTACK_GRADIENTS_IN_STEP = Code("attack-gradients-in-step", "04_zero_grad")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._times: Counter[Any] = Counter()
        self._reads: dict[Any, bool] = {}

    def step(self, facts: StepFacts) -> None:
        """Look for passes of two kinds: for an input's gradient, and for the weights alone."""
        if facts.edited or len(facts.fresh) < 2:
            return
        attacks = [one for one in facts.fresh if one.inputs and not one.weighted and self._reads_gradient(one.site)]
        training = [one for one in facts.fresh if not one.inputs]
        if not attacks or not training or len(attacks) + len(training) < len(facts.fresh):
            return
        if not any(one.added & two.added for one in attacks for two in training):
            return
        self._times[facts.step.site] += 1
        if (times := self._times[facts.step.site]) >= 2:
            line = attacks[-1].site[1]
            self.report_as(
                self.ATTACK_GRADIENTS_IN_STEP,
                "warning",
                facts.step.site,
                "The step also applies the gradients that the attack on the input has left in the weights' `.grad`.",
                f"update {facts.number} of {self.context.name(facts.step.optimizer)} applied {numbered(attacks)} of "
                f"the attack in line {line} with {numbered(training)}; {times} times",
                f"{self.context.variable(facts.step.optimizer)}.zero_grad()  # after the attack, before the training "
                "loss's backward()",
                Cause(*training[-1].site),
            )

    def _reads_gradient(self, site: Any) -> bool:
        if site not in self._reads:
            callers = self.context.log.path(site)[:_CALLERS]
            self._reads[site] = any(reads_gradient_of_an_input(one) for one in callers)
        return self._reads[site]

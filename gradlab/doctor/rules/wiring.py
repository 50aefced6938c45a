"""How model and optimizer are wired: parameters that no optimizer steps, and parameters that nothing reaches."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from ...formatting import number_of
from ..events import NO_SITE, Backward, Forward, Site, bit_positions
from ..finding import Cause, Code, Severity
from ..source.cuts import cut_before
from ..source.syntax import at
from ..source.wiring import made_from_helper, plain_container
from ..state.grad_groups import StepFacts
from .base import Lookup, Rule, RuleContext
from .stepping import EmptyStep

_MOST_PASSES = 64


class MissingParams(Rule):
    """Parameters that get gradients and are in no optimizer, while others of the same loss are stepped.

    A warning for layers in a plain list, for what was made after the optimizer, for what comes behind all that is
    stepped, and for a whole net whose own loss is never used. Anything else may be meant to stay as it is: a hint.
    """

    PARAMS_MISSING_FROM_OPTIMIZER = Code("params-missing-from-optimizer", "04_zero_grad", "Whose parameters?")
    OPTIMIZER_HOLDS_STALE_PARAMS = EmptyStep.OPTIMIZER_HOLDS_STALE_PARAMS

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._together: Counter[int] = Counter()  # params of a pass -> how many had these
        self._site: dict[int, Any] = {}
        self._late: dict[int, Site | None] = {}  # the line that made such parameters, if the optimizer was there before
        self._passes: list[Backward] = []
        self._by_hand = False  # gradients are copied from one net to another, as by workers that share a model
        self._training = 0  # parameters of models that were called in training mode

    def forward(self, event: Forward) -> None:
        """Note which models are in training mode: one that is meant to stay as it is seldom is."""
        if event.training and event.grad:
            self._training |= event.params

    def accumulate(self, added: Any) -> None:
        """Note the first passes, to see whether anybody uses them; not those of an attack, which want the input's."""
        backward = added.backward
        if len(self._passes) < _MOST_PASSES and not (backward.inputs or backward.given or backward.create):
            self._passes.append(backward)

    def step(self, facts: StepFacts) -> None:
        """Note which parameters got gradients together with those that are stepped here."""
        self._by_hand = self._by_hand or facts.edited
        for backward in facts.fresh:
            missing = backward.added & ~self.context.state.covered()
            if missing:
                if missing not in self._together:  # at the end, the model may be gone with the function that made it
                    self._late[missing] = self.context.log.models.registered_after(missing, facts.step.optimizer)
                self._together[missing] += 1
                self._site[missing] = facts.step

    def end(self, *, normal: bool) -> None:
        """Judge what was seen at least three times and has never moved."""
        index = self.context.log.index
        for missing, times in self._together.items():
            missing &= ~self.context.state.covered()
            missing &= ~index.weights_ever_written(missing)
            if times >= 3 and missing:
                self._judge(missing, times, self._site.get(missing))
        self._judge_own_losses()

    def _judge_own_losses(self) -> None:
        """Report nets that have a loss of their own, of which no step uses anything: a critic without an optimizer."""
        if self._by_hand or self.context.has_finding(self.OPTIMIZER_HOLDS_STALE_PARAMS):
            return
        state = self.context.state
        by_line: dict[int, list[Backward]] = {}
        for backward in self._passes:
            by_line.setdefault(backward.call_path, []).append(backward)
        for passes in by_line.values():
            missing = passes[-1].added & ~state.covered()
            missing &= ~self.context.log.index.weights_ever_written(missing)
            whole = any(model.params and not model.params & ~missing for model in self.context.log.models.all())
            if whole and len(passes) >= 3 and not any(one.used or one.offered for one in passes):
                made = next((one.site for one in state.optimizers.values() if one.site != NO_SITE), passes[-1].site)
                if state.optimizers and any(state.step_calls.values()):
                    net = self.context.part_name(missing) or "net"
                    fix = f"torch.optim.Adam({net}.parameters())  # an optimizer of its own; step it after its loss"
                    self._say(missing, len(passes), made, fix, "warning", at(made))

    def _judge(self, missing: int, times: int, step: Any) -> None:
        if step is None:
            step = next(iter(self._site.values()))
        models = self.context.log.models.all()
        registered = 0
        for model in models:
            registered |= model.params
        same = any(model.params & missing and model.params & step.params for model in models)
        stray = missing & ~registered  # such as layers in a plain Python list
        order = self.context.log.models.order
        near = [order[n] for n in bit_positions(missing) if n in order]
        stepped = [order[n] for n in bit_positions(step.params) if n in order]
        # A backbone may be meant to stay as it is, or all but the biases; a head that comes after all else is not.
        downstream = bool(near and stepped and min(near) < min(stepped) and max(near) <= min(stepped))
        late = next((site for params, site in self._late.items() if params & missing and site), None)
        module = step.params & registered and missing & self._training == missing
        severity: Severity = "warning" if stray or late or ((same or module) and downstream) else "hint"
        if self._stale(step, late):
            return
        made = self.context.state.optimizers[step.optimizer].site
        files, name = self.context.log.files(), self.context.param_names(missing, 1)
        listed = stray and "[" in name
        edited = late or (NO_SITE if made_from_helper(made) else made)
        cause = (lambda: plain_container(files, name)) if listed else at(edited)
        fix = self._fix(missing, step.optimizer, certain=severity == "warning")
        self._say(missing, times, made if made != NO_SITE else step.site, fix, severity, cause)

    def _say(
        self, missing: int, times: int, site: Site, fix: str, severity: Severity, cause: Lookup | Cause | None
    ) -> None:
        count = missing.bit_count()
        self.report_as(
            self.PARAMS_MISSING_FROM_OPTIMIZER,
            severity,
            site,
            f"{count} parameter{'s get' if count > 1 else ' gets'} gradients and {'are' if count > 1 else 'is'} in no "
            "optimizer, so they never learn.",
            f"{times} backward passes reached {self._names(missing)}",
            fix,
            cause,
        )

    def _names(self, params: int) -> str:
        return self.context.param_names(params) or f"{params.bit_count()} of them"

    def _fix(self, missing: int, optimizer: int, *, certain: bool) -> str:
        """Return the line that puts a part into the optimizer; where it may be meant so, the one that freezes it."""
        name, part = self.context.variable(optimizer), self.context.part_name(missing) or "new_part"
        if not certain:
            return f"{part}.requires_grad_(False)  # if it is meant to stay as it is; else put it into {name}"
        if part.endswith("]") or "[" in part:
            return (
                "nn.ModuleList([...])  # instead of a plain list or dictionary: then model.parameters() finds the parts"
            )
        return f"{name}.add_param_group({{'params': {part}.parameters()}})  # or {part}.requires_grad_(False)"

    def _stale(self, step: Any, late: Site | None) -> bool:
        """The optimizer still holds the parameters that these have replaced: say that instead."""
        models = self.context.log.models.all()
        registered = 0
        for model in models:
            if model.params & step.params:
                registered |= model.params
        gone = step.params & ~registered
        if not registered or not gone or self.context.state.groups(gone)[0].held:
            return False
        made = self.context.state.optimizers[step.optimizer].site
        self.report_as(
            self.OPTIMIZER_HOLDS_STALE_PARAMS,
            "error",
            made if made != NO_SITE else step.site,
            "The optimizer holds parameters that the model no longer has, and not those that took their place.",
            f"{gone.bit_count()} of {number_of(step.params.bit_count(), 'parameter')} of "
            f"{self.context.name(step.optimizer)} {'belongs' if gone.bit_count() == 1 else 'belong'} to no module that "
            "runs",
            f"{self.context.variable(step.optimizer)} = ...(model.parameters())  # make it after the model has its "
            "final parts",
            at(late or NO_SITE),
        )
        return True


class ModulesWithoutGradient(Rule):
    """Some parameters of an optimizer never get a gradient, although others of it do."""

    OPTIMIZER_HOLDS_STALE_PARAMS = EmptyStep.OPTIMIZER_HOLDS_STALE_PARAMS
    GRAPH_BROKEN = EmptyStep.GRAPH_BROKEN

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._reached = 0
        self._passes = 0
        self._site: Any = NO_SITE

    def accumulate(self, added: Any) -> None:
        """Note what is reached."""
        self._passes += 1
        self._site = added.backward.site
        for group in added.groups:
            self._reached |= group.params

    def end(self, *, normal: bool) -> None:
        """Say which parts were never reached: perhaps unused, perhaps cut off."""
        if self._passes < 5 or self.context.has_finding(self.OPTIMIZER_HOLDS_STALE_PARAMS):
            return
        index = self.context.log.index
        for optimizer, params in self.context.state.params_of.items():
            never = params & ~self._reached
            never &= ~index.frozen(never)
            if never and never != params and self.context.state.steps.get(optimizer):
                names = self.context.param_names(never)
                self.report_as(
                    self.GRAPH_BROKEN,
                    "hint",
                    self._site,
                    "Some of the optimizer's parameters never get a gradient: they are unused, or the graph is cut "
                    "before them.",
                    f"{never.bit_count()} of {params.bit_count()} parameters of {self.context.name(optimizer)} in "
                    f"{self._passes} backward passes" + (f": {names}" if names else ""),
                    "# look for .detach(), .data or no_grad() after the parts that do not learn",
                    partial(self._cause, self._site, self.context.part_name(never)),
                )

    def _cause(self, backward: Site, part: str) -> Cause | None:
        """Return what cuts the graph behind a part of the model; nothing does if that part is never used."""
        return cut_before(self.context.log.path(backward), part.split(".")[-1]) if part else None

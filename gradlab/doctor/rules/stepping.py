"""Steps that find nothing to apply, and loops that never take one."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..cells import Stepped
from ..events import NOWHERE
from ..finding import Code
from ..lines import clears_by_hand
from .base import Case, Rule, batches


class EmptyStep(Rule):
    """A step finds no gradient at all: says why."""

    ZERO_GRAD_BETWEEN_BACKWARD_AND_STEP = Code("zero-grad-between-backward-and-step", "04_zero_grad")
    OPTIMIZER_PARAMS_FROZEN = Code("optimizer-params-frozen", "04_zero_grad")
    STEP_WITHOUT_BACKWARD = Code("step-without-backward", "06_optimizer_step")
    OPTIMIZER_HOLDS_STALE_PARAMS = Code("optimizer-holds-stale-params", "04_zero_grad")
    GRAPH_BROKEN = Code("graph-broken", "01_autograd")

    def __init__(self, case: Case) -> None:
        """Start with no suspicion."""
        super().__init__(case)
        self._times: Counter[Any] = Counter()
        self._steps: Counter[int] = Counter()

    def step(self, stepped: Stepped) -> None:
        """Look for the reason in what has happened since the last step."""
        optimizer = stepped.step.optimizer
        self._steps[optimizer] += 1
        if stepped.edited or stepped.step.backward or any(held.used_by != optimizer for held in stepped.held):
            return
        if stepped.held:  # all of it applied before
            if stepped.cycle.others > 0 and not stepped.cycle.backwards:
                self._unreached(stepped)
            return
        if stepped.step.present and (stepped.step.norms is None or any(float(norm) for norm in stepped.step.norms)):
            return  # somebody has filled the gradients in a way that no version tells of, as through .data
        wiped = [wipe for wipe in stepped.cycle.wipes if wipe.lost]
        if wiped:
            self._wiped(stepped, wiped)
        elif stepped.step.frozen and stepped.step.frozen == stepped.step.pages:
            self._frozen(stepped)
        elif stepped.cycle.others > 0 and not stepped.cycle.backwards:
            self._unreached(stepped)
        elif not stepped.cycle.backwards:
            self._without(stepped)

    def _repeats(self, code: str, stepped: Stepped) -> int:
        """Count; return how often if that is often enough to speak, else 0."""
        key = code, stepped.step.optimizer
        self._times[key] += 1
        often = self._times[key] >= 2 and 2 * self._times[key] >= self._steps[stepped.step.optimizer]
        return self._times[key] if often else 0

    def _wiped(self, stepped: Stepped, wipes: list[Any]) -> None:
        clear, lost = wipes[-1].clear, wipes[-1].lost
        if times := self._repeats("wiped", stepped):
            self.report(
                self.ZERO_GRAD_BETWEEN_BACKWARD_AND_STEP,
                "error",
                clear.site if clear.site != NOWHERE else clears_by_hand(stepped.step.site),
                "The gradients are cleared after backward() and before step(), so the step has nothing to apply.",
                f"{batches(lost)} was cleared before update {stepped.number}; {times} updates found no gradient",
                "optimizer.zero_grad()  # move it above loss.backward(), or below optimizer.step()",
            )

    def _frozen(self, stepped: Stepped) -> None:
        if times := self._repeats("frozen", stepped):
            made = self.case.book.optimizers[stepped.step.optimizer].site
            self.report(
                self.OPTIMIZER_PARAMS_FROZEN,
                "error",
                made if made != NOWHERE else stepped.step.site,
                "None of this optimizer's parameters requires a gradient: its steps change nothing.",
                f"{times} steps of {self.case.name(stepped.step.optimizer)}, all of its "
                f"{stepped.step.pages.bit_count()} parameters have requires_grad=False",
                "optimizer = ...(p for p in model.parameters() if p.requires_grad)  # or unfreeze what should learn",
            )

    def _without(self, stepped: Stepped) -> None:
        if self.case.book.optimizers[stepped.step.optimizer].own:
            return  # it may need no gradients: an average of weights, a search without them
        if times := self._repeats("without", stepped):
            self.report(
                self.STEP_WITHOUT_BACKWARD,
                "error",
                stepped.step.site,
                "step() is called, but no backward() has put anything into its parameters' `.grad` since the last.",
                f"{times} of {self._steps[stepped.step.optimizer]} steps of "
                f"{self.case.name(stepped.step.optimizer)} found no gradient",
                "loss.backward()  # before optimizer.step()",
            )

    def _unreached(self, stepped: Stepped) -> None:
        if stepped.cycle.after:
            self._without(stepped)  # the passes were of another loss: this one has been computed, and that is all
            return
        times = self._repeats("unreached", stepped)
        if not times:
            return
        made = self.case.book.optimizers[stepped.step.optimizer].site
        called, pages = stepped.cycle.called, stepped.step.pages
        strangers = (pages & ~called).bit_count() if called & stepped.cycle.elsewhere else 0
        if not strangers and not called & pages:
            return  # its model was not even called: this optimizer has a rest
        site = made if made != NOWHERE else stepped.step.site
        if strangers:
            self.report(
                self.OPTIMIZER_HOLDS_STALE_PARAMS,
                "error",
                site,
                "The optimizer holds parameters that the model no longer has: backward() fills other ones.",
                f"{times} steps found no gradient; {strangers} of {stepped.step.pages.bit_count()} parameters belong "
                "to no module that runs",
                "optimizer = ...(model.parameters())  # make it after the model has its final parts",
            )
            return
        self.report(
            self.GRAPH_BROKEN,
            "error",
            self._newest if self._newest != NOWHERE else stepped.step.site,
            "backward() runs, but reaches none of the optimizer's parameters: the graph between them is cut.",
            f"{times} steps of {self.case.name(stepped.step.optimizer)} found no gradient after a backward pass",
            "# take out .detach(), .data, .item(), .numpy(), torch.tensor(...) or no_grad() between model and loss",
        )

    _newest = NOWHERE

    def backward(self, backward: Any) -> None:
        """Remember the newest line."""
        self._newest = backward.site


class NeverSteps(Rule):
    """Gradients are computed, and no step is ever taken."""

    NEVER_STEPS = Code("never-steps", "06_optimizer_step")

    def __init__(self, case: Case) -> None:
        """Start with nothing seen."""
        super().__init__(case)
        self._passes: list[Any] = []
        self._count = 0

    def adding(self, backward: Any, cells: list[Any]) -> None:
        """Count the passes; the newest few are enough to say where."""
        self._count += 1
        if len(self._passes) < 8:
            self._passes.append(backward)

    def end(self, *, normal: bool) -> None:
        """Is there an optimizer that was never used, although its parameters got gradients?"""
        book, pages = self.case.book, self.case.recorder.pages
        if self._count < 4:
            return
        stepped = 0
        for optimizer in book.steps | book.attempts:
            stepped |= book.covers[optimizer]
        for optimizer, cover in book.covers.items():
            passes = [one for one in self._passes if one.added & cover]
            idle = not book.attempts.get(optimizer) and not book.steps.get(optimizer) and not cover & stepped
            if idle and len(passes) >= 3 and not pages.moved(cover):
                own = [one for one in passes if not one.used] or passes  # not those that another optimizer has used
                self.report(
                    self.NEVER_STEPS,
                    "error",
                    own[-1].site,
                    "backward() computes gradients, but no step() ever applies them: the weights stay as they are.",
                    f"{self._count} backward passes, 0 steps of {self.case.name(optimizer)}",
                    "optimizer.step()  # after loss.backward()",
                )

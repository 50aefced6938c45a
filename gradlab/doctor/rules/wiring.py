"""How model and optimizer are wired: parameters that nobody steps, and parameters that nothing reaches."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..cells import Stepped
from ..events import NOWHERE
from ..finding import Code, Severity
from ..pages import numbers
from .base import Case, Rule
from .stepping import EmptyStep


class MissingParams(Rule):
    """Parameters that get gradients and are in no optimizer, while others of the same loss are stepped."""

    PARAMS_MISSING_FROM_OPTIMIZER = Code("params-missing-from-optimizer", "04_zero_grad")
    OPTIMIZER_HOLDS_STALE_PARAMS = EmptyStep.OPTIMIZER_HOLDS_STALE_PARAMS

    def __init__(self, case: Case) -> None:
        """Start with nothing seen."""
        super().__init__(case)
        self._together: Counter[int] = Counter()  # pages of a pass -> how many had these
        self._site: dict[int, Any] = {}

    def step(self, stepped: Stepped) -> None:
        """Note which parameters got gradients together with those that are stepped here."""
        for backward in stepped.fresh:
            missing = backward.added & ~self.case.book.covered()
            if missing:
                self._together[missing] += 1
                self._site[missing] = stepped.step

    def end(self, *, normal: bool) -> None:
        """Judge what was seen at least three times and has never moved."""
        pages = self.case.recorder.pages
        for missing, times in self._together.items():
            missing &= ~self.case.book.covered()
            missing &= ~pages.moved(missing)
            if times >= 3 and missing:
                self._judge(missing, times, self._site.get(missing))

    def _judge(self, missing: int, times: int, step: Any) -> None:
        if step is None:
            step = next(iter(self._site.values()))
        models = self.case.recorder.models.all()
        registered = 0
        for model in models:
            registered |= model.pages
        same = any(model.pages & missing and model.pages & step.pages for model in models)
        stray = missing & ~registered  # such as layers in a plain Python list
        order = self.case.recorder.models.order
        near = [order[n] for n in numbers(missing) if n in order]
        stepped = [order[n] for n in numbers(step.pages) if n in order]
        # A backbone may be meant to stay as it is, or all but the biases; a head that comes after all else is not.
        downstream = bool(near and stepped and min(near) < min(stepped) and max(near) <= min(stepped))
        late = self.case.recorder.younger(missing, step.optimizer)
        severity: Severity = "warning" if stray or late or (same and downstream) else "hint"
        if self._stale(step):
            return
        made = self.case.book.optimizers[step.optimizer].site
        count = missing.bit_count()
        self.report(
            self.PARAMS_MISSING_FROM_OPTIMIZER,
            severity,
            made if made != NOWHERE else step.site,
            f"{count} parameter{'s get' if count > 1 else ' gets'} gradients and {'are' if count > 1 else 'is'} in no "
            "optimizer, so they never learn.",
            f"{times} backward passes reached them{_shapes(self.case, missing)}",
            "optimizer.add_param_group({'params': new_part.parameters()})  # or requires_grad_(False) if meant so",
        )

    def _stale(self, step: Any) -> bool:
        """The optimizer still holds the parameters that these have replaced: say that instead."""
        models = self.case.recorder.models.all()
        registered = 0
        for model in models:
            if model.pages & step.pages:
                registered |= model.pages
        gone = step.pages & ~registered
        if not registered or not gone or self.case.book.cells(gone)[0].held:
            return False
        made = self.case.book.optimizers[step.optimizer].site
        self.report(
            self.OPTIMIZER_HOLDS_STALE_PARAMS,
            "error",
            made if made != NOWHERE else step.site,
            "The optimizer holds parameters that the model no longer has, and not those that took their place.",
            f"{gone.bit_count()} of {step.pages.bit_count()} parameters of {self.case.name(step.optimizer)} belong to "
            "no module that runs",
            "optimizer = ...(model.parameters())  # make it after the model has its final parts",
        )
        return True


class PartsWithoutGradient(Rule):
    """Some parameters of an optimizer never get a gradient, although others of it do."""

    OPTIMIZER_HOLDS_STALE_PARAMS = EmptyStep.OPTIMIZER_HOLDS_STALE_PARAMS
    GRAPH_BROKEN = EmptyStep.GRAPH_BROKEN

    def __init__(self, case: Case) -> None:
        """Start with nothing seen."""
        super().__init__(case)
        self._reached = 0
        self._passes = 0
        self._site: Any = NOWHERE

    def adding(self, backward: Any, cells: list[Any]) -> None:
        """Note what is reached."""
        self._passes += 1
        self._site = backward.site
        for cell in cells:
            self._reached |= cell.pages

    def end(self, *, normal: bool) -> None:
        """Say which parts were never reached: perhaps unused, perhaps cut off."""
        if self._passes < 5 or self.case.found(self.OPTIMIZER_HOLDS_STALE_PARAMS):
            return
        pages = self.case.recorder.pages
        for optimizer, cover in self.case.book.covers.items():
            never = cover & ~self._reached
            never &= ~pages.frozen(never)
            if never and never != cover and self.case.book.steps.get(optimizer):
                self.report(
                    self.GRAPH_BROKEN,
                    "hint",
                    self._site,
                    "Some of the optimizer's parameters never get a gradient: they are unused, or the graph is cut "
                    "before them.",
                    f"{never.bit_count()} of {cover.bit_count()} parameters of {self.case.name(optimizer)} in "
                    f"{self._passes} backward passes{_shapes(self.case, never)}",
                    "# look for .detach(), .data or no_grad() after the parts that do not learn",
                )


def _shapes(case: Case, pages: int) -> str:
    params = [case.recorder.pages.param(number) for number in numbers(pages)[:3]]
    shapes = [str(tuple(param.shape)) for param in params if param is not None]
    if not shapes:  # the model is gone with the function that made it
        return ""
    return f": shapes {', '.join(shapes)}" + (", ..." if pages.bit_count() > 3 else "")

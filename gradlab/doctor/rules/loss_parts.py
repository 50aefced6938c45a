"""Losses of several terms."""

from __future__ import annotations

from typing import Any

from ..finding import Code
from .base import Rule, RuleContext


class LossTermDetached(Rule):
    """One term of a sum is a plain number by the time it is added, so it moves no weight.

    Known from the variables at ``backward()``: the term needs no gradient while another does; and from the source: its
    assignment has ``.item()``, ``.detach()``, ``torch.tensor(...)`` or ``no_grad`` around something computed from the
    model. A constant that is added changes no gradient, so it is hardly ever meant. Factors, targets and
    ``a + (b - a).detach()`` are left alone; a sum in another function is not seen.
    """

    LOSS_TERM_DETACHED = Code("loss-term-detached", "01_autograd", "Cutting the graph")

    def __init__(self, context: RuleContext) -> None:
        """Start with nothing seen."""
        super().__init__(context)
        self._times: dict[Any, int] = {}

    def backward(self, backward: Any) -> None:
        """Speak when the same term was cut off in two passes."""
        for flaw in backward.flaws:
            if flaw.kind == "cut-term" and flaw.cut is not None:
                times = self._times[flaw.cut] = self._times.get(flaw.cut, 0) + 1
                if times == 2:
                    self.report(
                        self.LOSS_TERM_DETACHED,
                        "warning",
                        backward.site,
                        "One term of the loss is cut off from the model, so it changes the number and no gradient.",
                        f"at batch {backward.number} {flaw.seen} requires no gradient; other terms of the sum do",
                        "# take out .item(), .detach(), .data, float(...), torch.tensor(...) or no_grad() around it",
                        flaw.cut,
                    )

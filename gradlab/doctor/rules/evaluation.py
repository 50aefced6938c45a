"""Evaluation that builds graphs."""

from __future__ import annotations

from typing import Any

from ..events import Site
from ..finding import Code
from ..grad_groups import StepFacts
from .base import Rule, RuleContext

_ENOUGH = 3
_MOST_LINES = 64


class ValidationBuildsGraph(Rule):
    """Calls in evaluation mode build graphs, and each is thrown away without a backward pass.

    Known by following the graphs: an output's graph was freed, and nothing had gone back through any graph since that
    line ran last. It costs memory and time and no accuracy: a hint. Lines that a backward pass or ``autograd.grad``
    follows (attacks, saliency, a frozen network inside a loss) are left alone.
    """

    VALIDATION_BUILDS_GRAPH = Code("validation-builds-graph", "09_gpu_memory")

    def __init__(self, context: RuleContext) -> None:
        """Start with nothing seen."""
        super().__init__(context)
        self._trained = 0
        self._lines: dict[Site, Any] = {}

    def forward(self, event: Any) -> None:
        """Count graphs that were thrown away."""
        if not event.grad or event.training:
            return
        wasted = event.unused >= _ENOUGH and event.params & self._trained and not event.again
        if wasted and (event.site in self._lines or len(self._lines) < _MOST_LINES):
            self._lines[event.site] = event

    def step(self, facts: StepFacts) -> None:
        """Note what is trained."""
        self._trained |= facts.step.params

    def end(self, *, normal: bool) -> None:
        """Report the lines whose graphs were never used."""
        for site, event in self._lines.items():
            self.report(
                self.VALIDATION_BUILDS_GRAPH,
                "hint",
                site,
                "The model is evaluated with gradients on: each call builds a graph that no backward() uses, which "
                "costs memory and time.",
                f"{event.unused} calls in a row in evaluation mode, each with a graph that was thrown away",
                "with torch.no_grad():  # around validation",
            )

"""Evaluation that builds graphs."""

from __future__ import annotations

from ..finding import Code
from ..state.grad_groups import StepFacts
from .base import Rule, RuleContext

_ENOUGH = 3


class ValidationBuildsGraph(Rule):
    """Calls in evaluation mode build graphs, and each is thrown away without a backward pass.

    Known by following the graphs: an output's graph was freed, and nothing had gone back through any graph since it was
    built. It costs memory and time and no accuracy: a hint. Lines that a backward pass or ``autograd.grad``
    follows (attacks, saliency, a frozen network inside a loss) are left alone.
    """

    VALIDATION_BUILDS_GRAPH = Code("validation-builds-graph", "09_gpu_memory")

    def __init__(self, context: RuleContext) -> None:
        """Start with nothing seen."""
        super().__init__(context)
        self._trained = 0

    def step(self, facts: StepFacts) -> None:
        """Note what is trained."""
        self._trained |= facts.step.params

    def end(self, *, normal: bool) -> None:
        """Report the lines whose graphs were never used."""
        graphs = self.context.log.unused_graphs
        graphs.settle()
        for site, (wasted, params) in graphs.lines.items():
            if wasted < _ENOUGH or not params & self._trained:
                continue
            self.report(
                self.VALIDATION_BUILDS_GRAPH,
                "hint",
                site,
                "The model is evaluated with gradients on: each call builds a graph that no backward() uses, which "
                "costs memory and time.",
                f"{wasted} graphs built in evaluation mode were thrown away before any backward() ran",
                "with torch.no_grad():  # around validation",
            )

"""Writes that autograd does not see."""

from __future__ import annotations

from typing import Any

from ..causes.losses import data_write
from ..events import NO_SITE, Site
from ..finding import Code
from ..state.grad_groups import StepFacts
from .base import Rule, RuleContext

_MOST_LINES = 32


class DataWriteInLoop(Rule):
    """The loop writes to ``.data``: autograd does not see it, so gradients can be wrong without an error.

    Known from the source of the loop that takes the steps. Clamped weights and updates by hand are written so in many
    right programs, and ``no_grad`` does the same in the open: a hint, once a file.
    """

    DATA_WRITE_IN_LOOP = Code("data-write-in-loop", "01_autograd")

    def __init__(self, context: RuleContext) -> None:
        """Start with nothing seen."""
        super().__init__(context)
        self._lines: dict[Site, None] = {}

    def step(self, facts: StepFacts) -> None:
        """Note where steps are taken."""
        self._note(facts.step.site)

    def backward(self, backward: Any) -> None:
        """Note where backward passes run."""
        self._note(backward.site)

    def _note(self, site: Site) -> None:
        if site not in self._lines and site != NO_SITE and len(self._lines) < _MOST_LINES:
            self._lines[site] = None

    def end(self, *, normal: bool) -> None:
        """Read the loops."""
        told: set[str] = set()
        for site in self._lines:
            if site[0] not in told and (write := data_write(site)) is not None:
                told.add(site[0])
                self.report(
                    self.DATA_WRITE_IN_LOOP,
                    "hint",
                    (write.file, write.line),
                    "The loop writes to `.data`, which autograd does not see: a backward pass can use the new values "
                    "where it needs the old ones.",
                    f"line {write.line} writes to `.data` in the loop or function of line {site[1]}, of "
                    f"{self.context.log.backwards} backward passes in all",
                    "with torch.no_grad(): p.copy_(...)  # p itself, so that autograd raises an error where it matters",
                    write,
                )

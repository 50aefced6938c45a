"""The run without the newest switch, beside whose loss a lab shows its own: when there is one, and how far it goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..loop import SWITCHES, Recipe, UnswitchedRun
from ..scenes import PanelName
from .controls import UNSWITCHED

if TYPE_CHECKING:
    from .shown_run import ShownRun


class UnswitchedCopy:
    """Keeps a copy of the run from before the newest switch, and has it keep pace with the run."""

    def __init__(self, lab: ShownRun) -> None:
        """Begin without one."""
        self._lab = lab
        self.share = 0.1
        """How much of a processor core it may take."""
        self._run: UnswitchedRun | None = None
        self._wanted = True

    @property
    def wanted(self) -> bool:
        """Whether it is shown; what is not shown does not go on."""
        return self._wanted

    @wanted.setter
    def wanted(self, on: bool) -> None:
        self._wanted = on
        self._lab.screen.scenes.unswitched = self._run if on else None

    @property
    def possible(self) -> bool:
        """Is there a switch to turn, and a loss to show beside?

        Not where a GPU's memory is shown: its allocator would count the copy too.
        """
        panels, device = self._lab.panels(), self._lab.runner.task.device
        loss = PanelName.LOSS in panels or PanelName.HELD_OUT in panels
        counted = PanelName.MEMORY in panels and device.startswith("cuda")
        return loss and not counted and any(name in SWITCHES for name in self._lab.controls)

    def ticks(self) -> dict[str, bool]:
        """Return the value of its control, by the name; nothing where it has none."""
        return {UNSWITCHED: self._wanted} if self.possible else {}

    @contextmanager
    def through_switch(self, recipe: Recipe) -> Iterator[None]:
        """Around a switch to another recipe: from then on the run goes on in a copy without it."""
        if recipe == self._lab.runner.recipe:
            yield
            return
        kept = self._copy()
        yield
        switched = ", ".join(kept.recipe.changes_from(recipe)) if kept is not None else ""
        if kept is None or not switched:
            self.forget()
            return
        kept.switched = switched
        self._run = self._lab.screen.scenes.unswitched = kept
        if PanelName.HELD_OUT in self._lab.panels():
            self._lab.screen.scenes.watch_unswitched(kept)

    def follow(self, every: float) -> None:
        """Go on to where the run is; what it has done since the last call will be seen for ``every`` ms."""
        if self._run is not None and self._wanted:
            self._run.follow(self._lab.runner.updates, self.share * every)

    def end(self, why: str) -> None:
        """Go no further; the curve stays."""
        if self._run is not None and self._wanted:
            self._run.end(why)

    def forget(self) -> None:
        """Show the run alone."""
        if self._run is not None:
            self._run.end("no longer shown")
        self._run = self._lab.screen.scenes.unswitched = None

    def _copy(self) -> UnswitchedRun | None:
        """Return the run as it would go on from here, None where that is not shown."""
        runner = self._lab.runner
        if runner.edited or not (self.possible and self._wanted):
            return None
        if self._run is not None and self._run.begun == runner.updates:  # two switches at one update count as one
            return self._run
        try:
            return runner.unswitched()
        except Exception:  # there is no memory for it, or a model of the learner's own cannot be copied
            return None

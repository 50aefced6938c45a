"""The copy of a Lab's run from before the newest switch: made at a switch, and kept at the run's pace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..loop import SWITCHES, Counterfactual, Recipe
from ..scenes import PanelName
from .controls import UNSWITCHED

if TYPE_CHECKING:
    from .lab_model import LabModel


class UnswitchedCopy:
    """Goes on without the newest switch while the run goes on with it."""

    def __init__(self, model: LabModel) -> None:
        self._model = model
        self.share = 0.1
        """How much of a processor core it may take."""
        self._run: Counterfactual | None = None
        self._wanted = True  # is it shown? what is not shown does not go on

    def turn(self, on: bool) -> None:
        """Show it, or show the run alone."""
        self._wanted = on
        self._model.scenes.unswitched = self._run if on else None

    def ticks(self) -> dict[str, bool]:
        """Return the value of its control, by the name; nothing where there is no switch to turn or no loss to show.

        Nor where a GPU's memory is shown: its allocator would count the copy, too.
        """
        panels, device = self._model.panels(), self._model.runner.task.device
        loss = PanelName.LOSS in panels or PanelName.HELD_OUT in panels
        counted = PanelName.MEMORY in panels and device.startswith("cuda")
        can = loss and not counted and any(name in SWITCHES for name in self._model.controls)
        return {UNSWITCHED: self._wanted} if can else {}

    def switch(self, recipe: Recipe) -> None:
        """Switch the run to another recipe: from then on it goes on in a copy without the switch, too."""
        model, runner = self._model, self._model.runner
        if recipe == runner.recipe:
            runner.switch(recipe)
            return
        runner.complete_update()
        copy = self._copy()
        runner.switch(recipe)
        switched = ", ".join(copy.recipe.changes_from(recipe)) if copy is not None else ""
        if copy is None or not switched:
            self.forget()
            return
        copy.switched = switched
        self._run = model.scenes.unswitched = copy
        if PanelName.HELD_OUT in model.panels():
            model.scenes.watch_unswitched(copy)

    def follow(self, every: float) -> None:
        """Go on to where the run is; what it has done since the last call will be seen for ``every`` ms."""
        if self._run is not None and self._wanted:
            self._run.follow(self._model.runner.updates, self.share * every)

    def end(self, why: str) -> None:
        """Go no further; the curve stays."""
        if self._run is not None and self._wanted:
            self._run.end(why)

    def forget(self) -> None:
        """Show the run alone."""
        if self._run is not None:
            self._run.end("no longer shown")
        self._run = self._model.scenes.unswitched = None

    def _copy(self) -> Counterfactual | None:
        """Return the run as it would go on from here, None where that is not shown."""
        runner = self._model.runner
        if runner.loop.is_edited or not self.ticks().get(UNSWITCHED):
            return None
        if self._run is not None and self._run.begun == runner.updates:  # two switches at one update count as one
            return self._run
        try:
            return runner.unswitched()
        except Exception:  # there is no memory for it, or a model of the learner's own cannot be copied
            return None

"""The Lab: a loop that is shown, run, switched and drawn live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import tasks
from .._checks import did_you_mean, whole_number
from .._process import lock, progress_bar
from ..front import on_interrupt
from ..loop import LoopError, Recipe, Run
from ..scenes import PanelName, status_line
from . import controls as switches
from .controller import LabController
from .lab_model import USUAL_EVERY, LabModel
from .live import Live, Packed, Still
from .recording import MOST_UPDATES, Recording, record_lab
from .requests import Frame, Reply


class Lab(Live):
    """An interactive training loop: switches, the loop's text, and pictures of what it does.

    ``task`` is a Task or the name of one (None: digits), ``recipe`` a Recipe (None: the default at the task's ``lr``).
    ``controls`` and ``panels`` are lists of names, to show only what a lesson needs; ``speed`` is the one at which Play
    begins, such as "10 updates/s". Raises TypeError or ValueError that names the field, the value and what is allowed.
    """

    _screen = "lab"

    def __init__(
        self,
        task: Any = None,
        recipe: Recipe | None = None,
        controls: Sequence[str] | None = None,
        panels: Sequence[str] | None = None,
        speed: str = switches.USUAL_SPEED,
    ) -> None:
        chosen = switches.CONTROLS if controls is None else _names("controls", controls, switches.CONTROLS)
        panel_names = None if panels is None else [*map(PanelName, _names("panels", panels, tuple(PanelName)))]
        runner = Run(tasks.resolve("digits" if task is None else task, "Lab"), recipe)
        for name in (PanelName.PICTURE, PanelName.HELD_OUT):
            if runner.task.held_out is None and name in (panel_names or ()):
                about = f"panels of the task {runner.task.name!r} can be any but {str(name)!r}, got {str(name)!r}"
                raise ValueError(f"Lab: {about}")
        if not isinstance(speed, str) or speed not in switches.SPEEDS:
            raise ValueError(f"Lab: speed must be one of {', '.join(switches.SPEEDS)}, got {speed!r}")
        self.model = LabModel(runner, chosen, panel_names, speed)
        """The run with its panels and its words, and what can be done to it."""
        self._writer = self.model.writer
        self.controller = LabController(self.model)
        """What each message of the browser does."""

    @property
    def runner(self) -> Run:
        """The Run that is shown; choosing another task makes a new one."""
        return self.model.runner

    @property
    def text(self) -> str:
        """The state in words: one line, and more when something is wrong."""
        with lock:
            model = self.model
            oom_words = model.oom_words if model.note == model.oom_words else ""  # other words may have come since
            lines = (f"{self.runner.task.name}: {status_line(self.runner)}", self.warning, oom_words)
        return "\n".join(line for line in lines if line)

    @property
    def warning(self) -> str:
        """What the warning chip says, "" when nothing is wrong."""
        with lock:
            return self.model.warning

    def run(self, updates: int = 1) -> Lab:
        """Run so many updates without a browser; a bar shows how far it is when it takes over a second.

        Where memory runs out it stops, and the words under the pictures say why.
        """
        updates = whole_number("Lab.run: updates", updates, 0, kind=ValueError)
        try:
            with progress_bar(updates, "updates") as bar:
                self.model.advance_to(self.runner.updates + updates, bar.update)
        except LoopError as error:
            if not self.model.clean_up(error):
                raise
            self.controller.stop(self.model.oom_words)
        finally:
            self._show()
        return self

    def step(self, statements: int = 1) -> Lab:
        """Run one statement, or so many."""
        statements = whole_number("Lab.step: statements", statements, 0, kind=ValueError)
        try:
            self.model.step(statements, USUAL_EVERY)
        finally:
            self._show()
        return self

    def switch(self, **changes: Any) -> Lab:
        """Turn switches as a learner would: ``lab.switch(zero_grad=False)``; a bad value is a ValueError."""
        with lock:
            self.model.switch(self.runner.recipe.replace(**changes))
            self._show()
        return self

    def edit(self, text: str) -> Lab:
        """Run a loop of one's own from the next update on; a LoopError names the line of a mistake."""
        with lock:
            self.model.edit(text)
            self._show()
        return self

    def reset(self, weights: Sequence[float] | None = None) -> Lab:
        """Begin again: the same task, loop and seed; ``weights`` are numbers to begin with in place of the task's."""
        with lock:
            self.model.begin_again(weights)
            self._show()
        return self

    def record(
        self,
        updates: int = 150,
        switches: Sequence[str] | Mapping[str, Any] = (),
        marks: Sequence[int] = (),
        turns: int = 2,
    ) -> Recording:
        """Make this run anew from its start, as a recording that plays on a page without a kernel.

        It goes through the same changes of the loop, for so many updates in all. ``switches`` can be turned in the
        page at the updates in ``marks``: names, of those that are on or off, or names with the values to turn to. Every
        such run is computed now, with up to ``turns`` turns one after the other, 1 to 4. Raises TypeError or ValueError
        that names what is wrong.
        """
        with lock:
            return record_lab(self.model, self.text, updates, switches, marks, turns)

    # How it is shown -------------------------------------------------------------------------------------------------

    def handle(self, message: Mapping[str, Any]) -> Reply:
        """Reply to a message of the browser; while the lab is played, an interrupt of the kernel ends that."""
        reply = self.controller.handle(message)
        on_interrupt(self._interrupt, enabled=self.model.playing)
        return reply

    def frame(self) -> Frame:
        """Return what has changed since the frame before."""
        return self.controller.frame()

    def _interrupt(self) -> None:
        self.controller.interrupted = True

    def _show(self) -> None:
        """Tell the browser how things are after a cell has driven the lab; Reset comes back to here."""
        with lock:
            self.model.set_reset_point()
            super()._show()

    def _picture(self) -> Still:
        return self.model.still()

    def __repr__(self) -> str:
        return f"{self.text}\n\n{self.runner.source}"

    def packed(self) -> Packed:
        """Return a replay of the run so far; ``record`` says more of one: how long, and what can be turned in it."""
        return self.record(min(max(self.runner.updates, 1), MOST_UPDATES)).packed()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        with lock:
            if self._front is None:
                self.model.set_reset_point()
            return super()._repr_mimebundle_(include, exclude)


def _names(field: str, given: Any, allowed: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"Lab: {field} must be a list of names out of {', '.join(allowed)}, got {given!r}")
    for name in given:
        if name not in allowed:
            near = did_you_mean(name, allowed)
            raise ValueError(f"Lab: {field} must be names out of {', '.join(allowed)}, got {name!r}{near}")
    if field == "panels" and not given:
        raise ValueError(f"Lab: panels must be one or more names out of {', '.join(allowed)}, got {given!r}")
    return tuple(dict.fromkeys(given))

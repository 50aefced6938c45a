"""The Lab: a loop that is shown, run, switched and drawn live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from .. import tasks
from .._process import lock
from ..formatting import number_of
from ..front import on_interrupt
from ..loop import LoopError, Recipe, Run
from ..scenes import PanelName, shows_predictions, status_line
from . import controls as switches
from .controller import LabController
from .export import LiveView, mimebundle
from .presets import PRESETS
from .recording import MOST_UPDATES, Recorder, Recording, recording_caption, recording_marks, recording_turns
from .still import still_of


class Lab:
    """An interactive training loop: switches, the loop's text, and pictures of what it does.

    ``task`` is a Task or the name of one (None: digits), ``recipe`` a Recipe (None: the default at the task's ``lr``).
    ``controls`` and ``panels`` are lists of names, to show only what a lesson needs; ``speed`` is the one at which Play
    begins, such as "10 updates/s". Raises TypeError or ValueError that names the field, the value and what is allowed.
    """

    def __init__(
        self,
        task: Any = None,
        recipe: Recipe | None = None,
        controls: Sequence[str] | None = None,
        panels: Sequence[str] | None = None,
        speed: str = switches.USUAL_SPEED,
    ) -> None:
        """Build the run and its widgets."""
        chosen = switches.DEFAULT if controls is None else _names("controls", controls, switches.CONTROLS)
        shown = None if panels is None else [PanelName(name) for name in _names("panels", panels, tuple(PanelName))]
        runner = Run(tasks.resolve("digits" if task is None else task, "Lab"), recipe)
        if shown is not None and not shown:
            raise ValueError(f"Lab: panels must be one or more names out of {', '.join(PanelName)}, got {panels!r}")
        if shown and PanelName.PICTURE in shown and not shows_predictions(runner.task):
            raise ValueError(f"Lab: panels of the task {runner.task.name!r} can be any but 'picture', got 'picture'")
        if not isinstance(speed, str) or speed not in dict(switches.SPEEDS):
            raise ValueError(f"Lab: speed must be one of {', '.join(dict(switches.SPEEDS))}, got {speed!r}")
        if shown and PanelName.HELD_OUT in shown and runner.task.held_out is None:
            raise ValueError(
                f"Lab: panels of the task {runner.task.name!r} can be any but 'held-out loss', got 'held-out loss'"
            )
        self.controller = LabController(runner, chosen, shown, named=task is None or isinstance(task, str))
        self.controller.speed = speed
        """What each request of the browser does, and the frames that answer it."""
        self._view: LiveView | None = None
        self._heeds_interrupts = False

    @classmethod
    def preset(cls, name: str) -> Lab:
        """Return a Lab set up to show something by name, such as ``"forgot zero_grad"``."""
        if not isinstance(name, str) or name not in PRESETS:
            raise ValueError(f"Lab.preset: name must be one of {', '.join(map(repr, PRESETS))}, got {name!r}")
        preset = PRESETS[name]
        lab = cls(preset.task, preset.recipe, controls=preset.controls, speed=preset.speed)
        lab.controller.say(preset.say)
        return lab

    @property
    def runner(self) -> Run:
        """The Run that is shown; choosing another task makes a new one."""
        return self.controller.runner

    @property
    def text(self) -> str:
        """The state in words: one line, and more when something is wrong."""
        with lock:
            lines = (f"{self.runner.task.name}: {status_line(self.runner)}", self.warning, self.controller.oom_message)
        return "\n".join(line for line in lines if line)

    @property
    def warning(self) -> str:
        """What the warning chip says, "" when nothing is wrong."""
        with lock:
            return self.controller.warning

    def run(self, updates: int = 1) -> Lab:
        """Run so many updates without a browser; a bar shows how far it is when it takes over a second.

        Where memory runs out it stops, and the words under the pictures say why.
        """
        if not isinstance(updates, int) or isinstance(updates, bool) or updates < 0:
            raise ValueError(f"Lab.run: updates must be a whole number from 0, got {updates!r}")
        try:
            with tqdm(total=updates, desc="updates", delay=1, leave=False) as bar:
                self.controller.advance_to(self.runner.updates + updates, bar.update)
        except LoopError as error:
            if not self.controller.handle_oom(error):
                raise
        finally:
            self._show()
        return self

    def step(self, statements: int = 1) -> Lab:
        """Run one statement, or so many."""
        if not isinstance(statements, int) or isinstance(statements, bool) or statements < 0:
            raise ValueError(f"Lab.step: statements must be a whole number from 0, got {statements!r}")
        try:
            with lock, self.controller.listening():
                for _ in range(statements):
                    self.runner.step()
                self.controller.unswitched.follow(statements * switches.USUAL_EVERY)
        finally:
            self._show()
        return self

    def switch(self, **changes: Any) -> Lab:
        """Turn switches as a learner would: ``lab.switch(zero_grad=False)``; a bad value is a ValueError.

        ``card="T4"`` holds memory against a graphics card, ``card=""`` against none.
        """
        with lock:
            card = changes.pop("card", None)
            recipe = self.runner.recipe.replace(**changes)
            if card is not None:
                self.controller.compare_to_gpu(card)
            if changes or card is None:
                self.controller.switch(recipe)
            self._show()
        return self

    def edit(self, text: str) -> Lab:
        """Run a loop of one's own from the next update on; a LoopError names the line of a mistake."""
        with lock:
            self.controller.take_loop(text)
            self._show()
        return self

    def reset(self, weights: Sequence[float] | None = None) -> Lab:
        """Begin again: the same task, loop and seed; ``weights`` are numbers to begin with in place of the task's."""
        with lock:
            self.controller.begin_again(weights)
            self._show()
        return self

    def record(
        self,
        updates: int = 150,
        switches: Sequence[str] | Mapping[str, Any] = (),
        marks: Sequence[int] = (),
    ) -> Recording:
        """Make this run anew from its start, as a recording that plays on a page without a kernel.

        It goes through the same changes of the loop, for so many updates in all. ``switches`` can be turned in the
        page at the updates in ``marks``: names, of those that are on or off, or names with the values to turn to. Every
        such run is computed now, up to two turns one after the other. Raises TypeError or ValueError that names what is
        wrong.
        """
        with lock:
            runner = self.runner
            every = recording_marks(marks, updates)
            turns = recording_turns(switches, runner.recipe)
            loops = [(at, loop) for at, loop in runner.loops if at < updates or at == 0]
            shown = self.controller.controls, self.controller.chosen_panels
            recorder = Recorder(runner.task, runner.seed, runner.start_weights, *shown, self.controller.speed)
            tracks = recorder.record(loops, updates, turns, every)
            title = f"{runner.task.name}, {number_of(updates, 'update')}"
            about = title, recording_caption(turns, every), every if turns else []
            return Recording(*about, tracks, self.text, still_of(self.controller).png())

    def save(self, path: str | Path) -> Path:
        """Write the pictures as ``.png`` or ``.svg``, or a replay of the run so far as ``.html``; return the path.

        ``lab.record`` says more of a replay: how long it is, and which switches can be turned in it.
        """
        kinds = (".png", ".svg", ".html")
        if not isinstance(path, (str, Path)) or Path(path).suffix not in kinds:
            raise ValueError(f"Lab.save: path must end in {', '.join(kinds)}, got {str(path)!r}")
        target = Path(path)
        with lock:
            if target.suffix == ".html":
                return self.record(min(max(self.runner.updates, 1), MOST_UPDATES)).save(target)
            if target.suffix == ".png":
                target.write_bytes(still_of(self.controller).png())
            else:
                target.write_text(still_of(self.controller).svg(), encoding="utf-8")
        return target

    def _show(self) -> None:
        """Tell the browser how things are after a cell has driven the lab."""
        with lock:
            self.controller.leave_off()
            if self._view is not None:
                self._view.front.push(self.controller.frame())

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.controller.handle(request)
        if self.controller.playing != self._heeds_interrupts:
            self._heeds_interrupts = self.controller.playing
            on_interrupt(self._interrupt, heed=self._heeds_interrupts)
        return answer

    def _interrupt(self) -> None:
        self.controller.interrupted = True

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give the live view, and beside it the picture and the words that a saved notebook keeps."""
        with lock:
            png, words = still_of(self.controller).png(), self.text
            if self._view is None:
                self.controller.leave_off()
                self._view = LiveView("lab", self._answer)
            return mimebundle(self._view, png, words, f"{words}\n\n{self.runner.source}")


def _names(field: str, given: Any, allowed: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"Lab: {field} must be a list of names out of {', '.join(allowed)}, got {given!r}")
    for name in given:
        if name not in allowed:
            raise ValueError(f"Lab: {field} must be names out of {', '.join(allowed)}, got {name!r}")
    return tuple(dict.fromkeys(given))

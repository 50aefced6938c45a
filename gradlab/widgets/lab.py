"""The Lab: a loop that is shown, run, switched and drawn live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import tasks
from .._checks import did_you_mean, one_of, whole_number
from .._process import lock, progress_bar
from ..formatting import number_of
from ..front import on_interrupt
from ..loop import LoopError, Recipe, Run
from ..scenes import PanelName, status_line
from . import controls as switches
from .controller import LabController
from .driver import USUAL_EVERY, RunDriver
from .live import Live, Still
from .recording import (
    MOST_UPDATES,
    Recorder,
    Recording,
    recording_caption,
    recording_marks,
    recording_turns,
    recording_values,
)
from .requests import Frame, Reply
from .shown_run import ShownRun


class Lab(Live):
    """An interactive training loop: switches, the loop's text, and pictures of what it does.

    ``task`` is a Task or the name of one (None: digits), ``recipe`` a Recipe (None: the default at the task's ``lr``).
    ``controls`` and ``panels`` are lists of names, to show only what a lesson needs; ``speed`` is the one at which Play
    begins, such as "10 updates/s". Raises TypeError or ValueError that names the field, the value and what is allowed.
    """

    _entry = "lab"

    def __init__(
        self,
        task: Any = None,
        recipe: Recipe | None = None,
        controls: Sequence[str] | None = None,
        panels: Sequence[str] | None = None,
        speed: str = switches.USUAL_SPEED,
    ) -> None:
        chosen = switches.DEFAULT if controls is None else _names("controls", controls, switches.CONTROLS)
        panel_names = None if panels is None else _panel_names(panels)
        runner = Run(tasks.resolve("digits" if task is None else task, "Lab"), recipe)
        for name, can in (
            (PanelName.PICTURE, runner.task.held_out is not None),
            (PanelName.HELD_OUT, runner.task.held_out is not None),
        ):
            if not can and name in (panel_names or ()):
                about = f"panels of the task {runner.task.name!r} can be any but {str(name)!r}, got {str(name)!r}"
                raise ValueError(f"Lab: {about}")
        if not isinstance(speed, str) or speed not in switches.SPEEDS:
            raise ValueError(f"Lab: speed must be one of {', '.join(switches.SPEEDS)}, got {speed!r}")
        self.shown = ShownRun(runner, chosen, panel_names)
        """The run with its panels and its words."""
        self.shown.speed = speed
        self.driver = RunDriver(self.shown)
        """What is done to the run."""
        self.controller = LabController(self.shown, self.driver)
        """What each message of the browser does."""
        self._heeds_interrupts = False

    @classmethod
    def preset(cls, name: str) -> Lab:
        """Return a Lab set up to show something by name, such as ``"forgot zero_grad"``."""
        preset = PRESETS[one_of("Lab.preset: name", name, PRESETS, kind=ValueError)]
        lab = cls(preset.task, preset.recipe, controls=preset.controls, speed=preset.speed)
        lab.shown.say(preset.say)
        return lab

    @property
    def runner(self) -> Run:
        """The Run that is shown; choosing another task makes a new one."""
        return self.shown.runner

    @property
    def text(self) -> str:
        """The state in words: one line, and more when something is wrong."""
        with lock:
            lines = (f"{self.runner.task.name}: {status_line(self.runner)}", self.warning, self.shown.oom_message)
        return "\n".join(line for line in lines if line)

    @property
    def warning(self) -> str:
        """What the warning chip says, "" when nothing is wrong."""
        with lock:
            return self.shown.warning

    def run(self, updates: int = 1) -> Lab:
        """Run so many updates without a browser; a bar shows how far it is when it takes over a second.

        Where memory runs out it stops, and the words under the pictures say why.
        """
        updates = whole_number("Lab.run: updates", updates, 0, kind=ValueError)
        try:
            with progress_bar(updates, "updates") as bar:
                self.driver.advance_to(self.runner.updates + updates, bar.update)
        except LoopError as error:
            if not self.driver.clean_up(error):
                raise
            self.controller.stop(self.shown.oom_words)
        finally:
            self._show()
        return self

    def step(self, statements: int = 1) -> Lab:
        """Run one statement, or so many."""
        statements = whole_number("Lab.step: statements", statements, 0, kind=ValueError)
        try:
            self.driver.step(statements, USUAL_EVERY)
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
                self.shown.compare_to_gpu(card)
            if changes or card is None:
                self.driver.switch(recipe)
            self._show()
        return self

    def edit(self, text: str) -> Lab:
        """Run a loop of one's own from the next update on; a LoopError names the line of a mistake."""
        with lock:
            self.driver.edit(text)
            self._show()
        return self

    def reset(self, weights: Sequence[float] | None = None) -> Lab:
        """Begin again: the same task, loop and seed; ``weights`` are numbers to begin with in place of the task's."""
        with lock:
            self.driver.begin_again(weights)
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
            runner = self.runner
            every, updates = recording_marks(marks, updates), int(updates)
            values, most = recording_values(switches, runner.recipe), recording_turns(turns)
            loops = [(at, loop) for at, loop in runner.loops if at < updates or at == 0]
            shown = self.shown.controls, self.shown.chosen_panels
            recorder = Recorder(runner.task, runner.seed, runner.start_weights, *shown, self.shown.speed)
            tracks = recorder.record(loops, updates, values, every, most)
            title = f"{runner.task.name}, {number_of(updates, 'update')}"
            about = title, recording_caption(values, every), every if values else []
            return Recording(*about, tracks, self.text, self.shown.still())

    # How it is shown -------------------------------------------------------------------------------------------------

    def handle(self, message: Mapping[str, Any]) -> Reply:
        """Reply to a message of the browser; while the lab is played, an interrupt of the kernel ends that."""
        reply = self.controller.handle(message)
        if self.shown.playing != self._heeds_interrupts:
            self._heeds_interrupts = self.shown.playing
            on_interrupt(self._interrupt, heed=self._heeds_interrupts)
        return reply

    def frame(self) -> Frame:
        """Return what has changed since the frame before."""
        return self.controller.frame()

    def newest(self) -> Frame | None:
        """Return the newest frame as a whole one, None before the first."""
        return self.shown.newest()

    def _interrupt(self) -> None:
        self.controller.interrupted = True

    def _show(self) -> None:
        """Tell the browser how things are after a cell has driven the lab; Reset comes back to here."""
        with lock:
            self.driver.leave_off()
            super()._show()

    def _picture(self) -> Still:
        return self.shown.still()

    def _alt(self) -> str:
        return self.text

    def _plain(self) -> str:
        return f"{self.text}\n\n{self.runner.source}"

    def _page(self) -> str:
        """Return a replay of the run so far; ``record`` says more of one: how long, and what can be turned in it."""
        return self.record(min(max(self.runner.updates, 1), MOST_UPDATES)).page()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        with lock:
            if self._front is None:
                self.driver.leave_off()
            return super()._repr_mimebundle_(include, exclude)


def _panel_names(given: Sequence[str]) -> list[PanelName]:
    names = [PanelName(name) for name in _names("panels", given, tuple(PanelName))]
    if not names:
        raise ValueError(f"Lab: panels must be one or more names out of {', '.join(PanelName)}, got {given!r}")
    return names


def _names(field: str, given: Any, allowed: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"Lab: {field} must be a list of names out of {', '.join(allowed)}, got {given!r}")
    for name in given:
        if name not in allowed:
            near = did_you_mean(name, allowed)
            raise ValueError(f"Lab: {field} must be names out of {', '.join(allowed)}, got {name!r}{near}")
    return tuple(dict.fromkeys(given))


@dataclass(frozen=True)
class Preset:
    """What ``Lab.preset(name)`` sets up; ``say`` is what to look for, ``speed`` one at which it can be seen."""

    task: str
    recipe: Recipe
    controls: tuple[str, ...]
    say: str
    speed: str = switches.USUAL_SPEED


PRESETS = {
    "healthy": Preset(
        "digits",
        Recipe(lr=0.1),
        ("zero_grad", "set_to_none", "lr", "speed"),
        "The loss falls; .grad holds one batch at a time.",
    ),
    "forgot zero_grad": Preset(
        "digits",
        Recipe(zero_grad=False, lr=0.1),
        ("zero_grad", "lr", "speed"),
        "Old batches pile up in .grad, and the loss begins to swing.",
        "10 updates/s",
    ),
    "swing in a bowl": Preset(
        "bowl",
        Recipe(zero_grad=False, lr=0.2),
        ("zero_grad", "lr", "speed"),
        "The weights swing from side to side and never settle.",
        "10 updates/s",
    ),
    "accumulation": Preset(
        "line",
        Recipe(accumulate=4, lr=0.01),
        ("accumulate", "divide_loss", "zero_grad", "lr", "speed"),
        "Four arrows, head to tail, make one step.",
        "statements",
    ),
    "forgot to divide": Preset(
        "line",
        Recipe(accumulate=4, divide_loss=False, lr=0.01),
        ("accumulate", "divide_loss", "lr", "speed"),
        "The sum of four losses takes steps four times too long.",
        "10 updates/s",
    ),
    "fp16 overflow": Preset(
        "line",
        Recipe(amp="fp16", lr=0.01),
        ("amp", "clip", "lr", "zero_grad", "speed"),
        "At a scale of 65,536 the gradients overflow: steps are skipped, and the scale is halved until they fit.",
        "1 update/s",
    ),
}

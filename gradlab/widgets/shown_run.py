"""A Run with what a Lab shows of it: which panels, drawn when, and the words around them, as frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from .._process import lock
from ..doctor import LiveDoctor
from ..drawing import Drawing
from ..loop import Run, RunPoint
from ..scenes import PanelName, RunScenes, status_line, warning
from .code import changed_lines
from .controls import USUAL_SPEED, lab_settings
from .frames import SIZE, Frame, FrameWriter, Pace, PanelDrawings, live_pace
from .python_state import python_state
from .requests import PanelSize
from .unswitched import UnswitchedCopy


class ShownRun:
    """A run, its panels and its words; ``frame`` tells the browser what has changed in them."""

    def __init__(
        self, runner: Run, controls: Sequence[str], panels: Sequence[PanelName] | None, *, named: bool = True
    ) -> None:
        """Look at a run; ``panels`` as in Lab, None for what suits the task.

        ``named`` says that the name of the run's task is all that is needed to get it again.
        """
        self.runner = runner
        self.controls = controls
        self.speed = USUAL_SPEED
        """The words of SPEEDS at which Play begins, until the learner chooses another."""
        self.playing = False
        """True from the first request for frames to the end of playing."""
        self.stopped = False
        """True from the end of a playing that nobody paused to the next thing that is asked."""
        self.chosen_panels = panels
        """What was asked for, None for what suits the task."""
        self._task_text = repr(runner.task.name) if named else "task"  # as a line of Python has it
        self._doctor = LiveDoctor()
        self._note, self._oom_message = runner.task.title, ""
        self._card = ""  # the one that was chosen
        self._draft, self._wrong = "", 0  # a text that was not taken or that failed, and its line that is wrong
        self._source, self._changed = runner.source, list[int]()
        self._memory_due = False  # the loop has changed, and its memory has not been looked at since
        self._now = 0.0  # ms on the clock of the pictures, which goes as fast as they are played
        self._state_due, self._last_state = 0.0, ""
        self._settings_key: object = None
        self._last_settings: dict[str, Any] = {}
        self._left_off: RunPoint | None = None
        self.pace_at: Callable[..., Pace] = live_pace
        """How often what is costly is drawn."""
        self._scenes = RunScenes(runner)
        self.screen = PanelDrawings(self._scenes)
        self._scenes.watch_for(self.panels())
        self.unswitched = UnswitchedCopy(self)
        self._writer = FrameWriter()

    def resize(self, size: PanelSize) -> None:
        """Lay panels out for these sizes from now on."""
        self.screen.size = size

    def panels(self) -> list[PanelName]:
        """Return the names of the panels to show now."""
        available = self._scenes.names()
        if self.chosen_panels is not None:  # another task may have no picture: its landscape stands in
            can = (*available, PanelName.SCALER)
            return [name if name in can else PanelName.LANDSCAPE for name in self.chosen_panels]
        third = next(n for n in (PanelName.SCALER, PanelName.PICTURE, PanelName.LANDSCAPE) if n in available)
        return [PanelName.LOSS, PanelName.GRADIENT, third, PanelName.MEMORY]

    def drawings(self, size: PanelSize = SIZE) -> list[Drawing]:
        """Return every panel as it is now, for a still picture."""
        with lock:
            panels = PanelDrawings(self._scenes)
            panels.size = size
            return list(panels.draw(self.panels(), 0.0).values())

    @property
    def changed(self) -> list[int]:
        """The lines of the loop that the newest switch has changed."""
        if self.runner.source != self._source:
            self._changed = changed_lines(self._source, self.runner.source) if self._source else []
            self._source = self.runner.source
        return self._changed

    def frame(self, *, only_due: bool = False) -> Frame:
        """Return what has changed since the frame before; ``only_due`` leaves costly panels as they were."""
        with lock:
            runner = self.runner
            ran = runner.statement
            frame = self._writer.write(
                self.screen.draw(self.panels(), self._now, only_due=only_due),
                updates=runner.updates,
                state=self._state(only_due=only_due),
                alarm=self.warning,
                note=self._note,
                lit=[ran.line, ran.last_line],
                changed=self.changed,
                wrong=self._wrong,
                draft=self._draft,
                zoomed=self.screen.zoom is not None,
                left_off=self._left_off.updates if self._left_off else None,
                **self._settings(),
                copy="" if only_due else python_state(runner, self._task_text),
            )
            if self.stopped:
                frame["stop"] = True
            return frame

    def _settings(self) -> dict[str, Any]:
        """Return what only a switch, another task or another loop changes: made anew only then."""
        runner = self.runner
        ticks = self.unswitched.ticks()
        key = (runner, runner.recipe, runner.source, self._card, ticks)
        if key != self._settings_key:
            self._settings_key = key
            self._last_settings = lab_settings(runner, self.controls, self._card, self.speed, ticks)
        return self._last_settings

    def _state(self, *, only_due: bool) -> str:
        """Return the status line, while playing no oftener than it is due."""
        if not only_due or self._now >= self._state_due:
            self._state_due = self._now + self.screen.pace.words
            self._last_state = status_line(self.runner, self._scenes.measured)
        return self._last_state

    @property
    def note(self) -> str:
        """What the Lab has to say, under the status line."""
        return self._note

    @property
    def oom_message(self) -> str:
        """How memory ran out, "" if it did not or if other words have come since."""
        return self._oom_message if self._note == self._oom_message else ""

    def watch(self) -> None:
        """Have the run count bytes if somebody looks at them: when its panel is due, and once after each switch."""
        if self._memory_due:  # what is drawn between the switch and the next update shows nothing of it yet
            self._memory_due = False
            self.screen.draw_next(PanelName.MEMORY)
        looked_at = not self.playing or self.screen.due(PanelName.MEMORY, self._now)
        self.runner.watch_memory = PanelName.MEMORY in self.panels() and looked_at

    @property
    def warning(self) -> str:
        """What is wrong with the run, and with a loop of the learner's own; "" if nothing is."""
        return warning(self.runner) or (self._doctor.text() if self.runner.edited else "")

    def listening(self) -> AbstractContextManager[object]:
        """Let the doctor listen to a loop of the learner's own; a recipe's loop is known to be in order."""
        return self._doctor if self.runner.edited else nullcontext()

    def tell_all(self) -> None:
        """Have the next frame tell everything."""
        self._writer.start_over()

    def say(self, words: str) -> None:
        """Put words under the status line, from the next frame on."""
        self._note = words

    def _start_showing(self, words: str, *, keep_scenes: bool = False) -> None:
        self._source, self._changed, self._wrong = self.runner.source, [], 0
        self._doctor = LiveDoctor()
        self.unswitched.forget()
        if not keep_scenes:
            card, self._scenes = self._scenes.card, RunScenes(self.runner)
            self._scenes.card = card
            size, self.screen = self.screen.size, PanelDrawings(self._scenes)
            self.screen.size = size
            self._scenes.watch_for(self.panels())
        self.screen.zoom = None
        self.say(words)

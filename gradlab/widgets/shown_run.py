"""A Run with what a Lab shows of it: which panels, drawn when, and the words around them, as frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from ..doctor import LiveDoctor
from ..drawing import Drawing, draw_chip, draw_loop
from ..forecasting import card_name, usable_bytes
from ..formatting import bytes_text
from ..loop import SWITCHES, Recipe, Run, RunPoint, UnswitchedRun
from ..scenes import PanelName, RunScenes, status_line, warning
from .controls import UNSWITCHED, USUAL_SPEED, lab_settings
from .frames import SIZE, FrameWriter, Pace, PanelDrawings, changed_lines, live_pace
from .live import Still
from .requests import Frame, PanelSize

_WIDE, _APART = 930, 10  # CSS pixels: about as wide as a lab in a notebook, so that little moves when the lab comes
_SIZES = {1: PanelSize(530, 297, 530), 2: PanelSize(530, 270, _WIDE), 3: PanelSize(465, 270, 465)}
"""Of one panel to three, which with the loop fill rows of two: a last one without a neighbour spans its row."""
_SMALL = PanelSize(300, 216, 600)
"""Of more panels, in rows of two beside the loop."""


class ShownRun:
    """A run, its panels and its words; ``frame`` tells the browser what has changed in them.

    ``panels`` and ``controls`` are as in Lab, ``panels`` None for what suits the task.
    """

    def __init__(self, runner: Run, controls: Sequence[str], panels: Sequence[PanelName] | None) -> None:
        self.controls, self.chosen_panels = controls, panels
        self.speed = USUAL_SPEED
        """The words of SPEEDS at which Play begins, until the learner chooses another."""
        self.pace_at: Callable[..., Pace] = live_pace
        """How often what is costly is drawn."""
        self.playing = False
        """True from the first request for frames to the end of playing."""
        self.left_off: RunPoint | None = None
        """Where Reset goes back to, None for the start."""
        self.draft, self.wrong = "", 0
        """A text that was not taken or that failed, and the line that is wrong in what is shown."""
        self.oom_words = ""
        """How memory ran out."""
        self.memory_due = False
        """The loop has changed, and its memory has not been looked at since."""
        self.unswitched = UnswitchedCopy(self)
        self._now = 0.0  # ms on the clock of the pictures, which goes as fast as they are played
        self._state_due, self._last_state = 0.0, ""
        self._settings_key: object = None
        self._last_settings: dict[str, Any] = {}
        self._card = ""  # the one that was chosen
        self._writer = FrameWriter()
        self.screen = PanelDrawings(RunScenes(runner))
        self.show(runner, runner.task.title)

    def show(self, runner: Run, words: str, *, keep_view: bool = False) -> None:
        """Show a run that begins; ``keep_view`` leaves a landscape as it is."""
        self.runner = runner
        self._source, self._changed = runner.source, list[int]()
        self.wrong, self._doctor = 0, LiveDoctor()
        self.unswitched.forget()
        if not keep_view:
            card, size = self.scenes.card, self.screen.size
            self.screen = PanelDrawings(RunScenes(runner))
            self.scenes.card, self.screen.size = card, size
            self.scenes.watch_for(self.panels())
        self.screen.zoom = None
        self.say(words)

    # What is shown ----------------------------------------------------------------------------------------------------

    @property
    def scenes(self) -> RunScenes:
        """What the panels draw."""
        return self.screen.scenes

    def panels(self) -> list[PanelName]:
        """Return the names of the panels to show now."""
        available = self.scenes.names()
        if self.chosen_panels is not None:  # another task may have no picture: its landscape stands in
            can = (*available, PanelName.SCALER)
            return [name if name in can else PanelName.LANDSCAPE for name in self.chosen_panels]
        third = next(n for n in (PanelName.SCALER, PanelName.PICTURE, PanelName.LANDSCAPE) if n in available)
        return [PanelName.LOSS, PanelName.GRADIENT, third, PanelName.MEMORY]

    def drawings(self, size: PanelSize = SIZE) -> list[Drawing]:
        """Return every panel as it is now, for a still picture."""
        panels = PanelDrawings(self.scenes)
        panels.size = size
        return list(panels.draw(self.panels(), 0.0).values())

    def still(self) -> Still:
        """Return the picture of a lab: the warning above, the loop with its words, and the panels."""
        count = len(self.panels())
        size = _SIZES.get(count, _SMALL)
        if size is _SMALL and count % 2 == 0:
            size = size._replace(last=size.width)
        ran = self.runner.statement
        words = [text for text in (self.note, status_line(self.runner)) if text]
        wide = _WIDE - _APART - (size.width if count in _SIZES else 2 * size.width)
        loop = draw_loop(self.runner.source, range(ran.line, ran.last_line + 1), self.changed, words, wide)
        chip = draw_chip(self.warning, _WIDE) if self.warning else None
        if count not in _SIZES:
            return Still(self.drawings(size), beside=loop, above=chip)
        return Still([replace(loop, width=loop.width + _APART), *self.drawings(size)], above=chip)

    @property
    def changed(self) -> list[int]:
        """The lines of the loop that the newest switch has changed."""
        if self.runner.source != self._source:
            self._changed = changed_lines(self._source, self.runner.source) if self._source else []
            self._source = self.runner.source
        return self._changed

    def frame(self, *, only_due: bool = False) -> Frame:
        """Return what has changed since the frame before; ``only_due`` leaves costly panels as they were."""
        runner = self.runner
        ran = runner.statement
        return self._writer.write(
            self.screen.draw(self.panels(), self._now, only_due=only_due),
            updates=runner.updates,
            state=self._state(only_due=only_due),
            alarm=self.warning,
            note=self._note,
            lit=[ran.line, ran.last_line],
            changed=self.changed,
            wrong=self.wrong,
            draft=self.draft,
            zoomed=self.screen.zoom is not None,
            left_off=self.left_off.updates if self.left_off else None,
            **self._settings(),
        )

    def newest(self) -> Frame | None:
        """Return the newest frame as a whole one, None before the first."""
        return self._writer.newest()

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
            self._last_state = status_line(self.runner, self.scenes.measured)
        return self._last_state

    @property
    def note(self) -> str:
        """What the Lab has to say, under the status line."""
        return self._note

    @property
    def oom_message(self) -> str:
        """How memory ran out, "" if it did not or if other words have come since."""
        return self.oom_words if self.note == self.oom_words else ""

    @property
    def warning(self) -> str:
        """What is wrong with the run, and with a loop of the learner's own; "" if nothing is."""
        return warning(self.runner) or (self._doctor.text() if self.runner.edited else "")

    # What changes it --------------------------------------------------------------------------------------------------

    def say(self, words: str) -> None:
        """Put words under the status line, from the next frame on."""
        self._note = words

    def tell_all(self) -> None:
        """Have the next frame tell everything."""
        self._writer.start_over()

    def tell_again(self, *keys: str) -> None:
        """Have the next frame tell these, whether they have changed or not."""
        self._writer.tell_again(*keys)

    def compare_to_gpu(self, card: str) -> None:
        """Hold memory against a card by its name, or against none (""); ValueError for a name that is unknown."""
        card = card and (card_name(card) or card)
        self.scenes.card = (card, usable_bytes(card)) if card else None
        self._card = card
        self.screen.draw_next(PanelName.MEMORY)
        held = self.scenes.capacity()
        self.say(
            f"Memory is held against {held[0]}: {bytes_text(held[1])}." if held else "Memory is held against no card."
        )

    def listening(self) -> AbstractContextManager[object]:
        """Let the doctor listen to a loop of the learner's own; a recipe's loop is known to be in order."""
        return self._doctor if self.runner.edited else nullcontext()

    def listen_anew(self) -> None:
        """Forget what the doctor has heard: another loop runs."""
        self._doctor = LiveDoctor()

    def pass_time(self, every: float, *, full_speed: bool) -> None:
        """Get ready for a frame that will be seen for ``every`` ms, the next one of a lab that is played."""
        self._now += every
        self.screen.pace = self.pace_at(every, full_speed=full_speed)
        self.count_bytes_if_seen()

    def count_bytes_if_seen(self) -> None:
        """Have the run count bytes if somebody looks at them: when its panel is due, and once after each switch."""
        if self.memory_due:  # what is drawn between the switch and the next update shows nothing of it yet
            self.memory_due = False
            self.screen.draw_next(PanelName.MEMORY)
        looked_at = not self.playing or self.screen.due(PanelName.MEMORY, self._now)
        self.runner.watch_memory = PanelName.MEMORY in self.panels() and looked_at


class UnswitchedCopy:
    """Keeps a copy of the run from before the newest switch, and has it keep pace with the run."""

    def __init__(self, shown: ShownRun) -> None:
        self._shown = shown
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
        self._shown.scenes.unswitched = self._run if on else None

    @property
    def possible(self) -> bool:
        """Is there a switch to turn, and a loss to show beside?

        Not where a GPU's memory is shown: its allocator would count the copy too.
        """
        panels, device = self._shown.panels(), self._shown.runner.task.device
        loss = PanelName.LOSS in panels or PanelName.HELD_OUT in panels
        counted = PanelName.MEMORY in panels and device.startswith("cuda")
        return loss and not counted and any(name in SWITCHES for name in self._shown.controls)

    def ticks(self) -> dict[str, bool]:
        """Return the value of its control, by the name; nothing where it has none."""
        return {UNSWITCHED: self._wanted} if self.possible else {}

    @contextmanager
    def through_switch(self, recipe: Recipe) -> Iterator[None]:
        """Around a switch to another recipe: from then on the run goes on in a copy without it."""
        if recipe == self._shown.runner.recipe:
            yield
            return
        kept = self._copy()
        yield
        switched = ", ".join(kept.recipe.changes_from(recipe)) if kept is not None else ""
        if kept is None or not switched:
            self.forget()
            return
        kept.switched = switched
        self._run = self._shown.scenes.unswitched = kept
        if PanelName.HELD_OUT in self._shown.panels():
            self._shown.scenes.watch_unswitched(kept)

    def follow(self, every: float) -> None:
        """Go on to where the run is; what it has done since the last call will be seen for ``every`` ms."""
        if self._run is not None and self._wanted:
            self._run.follow(self._shown.runner.updates, self.share * every)

    def end(self, why: str) -> None:
        """Go no further; the curve stays."""
        if self._run is not None and self._wanted:
            self._run.end(why)

    def forget(self) -> None:
        """Show the run alone."""
        if self._run is not None:
            self._run.end("no longer shown")
        self._run = self._shown.scenes.unswitched = None

    def _copy(self) -> UnswitchedRun | None:
        """Return the run as it would go on from here, None where that is not shown."""
        runner = self._shown.runner
        if runner.edited or not (self.possible and self._wanted):
            return None
        if self._run is not None and self._run.begun == runner.updates:  # two switches at one update count as one
            return self._run
        try:
            return runner.unswitched()
        except Exception:  # there is no memory for it, or a model of the learner's own cannot be copied
            return None

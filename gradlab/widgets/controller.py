"""The controller of a Lab: hands what the learner does to the run, and what the run did to the widgets."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import ipywidgets as widgets

from .. import tasks
from .._process import lock
from ..doctor import LiveDoctor
from ..forecast import usable_bytes
from ..formatting import bytes_text
from ..loop import LoopError, Recipe, Run
from ..scenes import PanelName, RunScenes, explain_oom, find_oom, free_after_oom, status_line, warning
from .code import CodePane
from .controls import lab_controls
from .panels import PanelStrip
from .player import Player
from .theme import style_sheet
from .words import words


class LabController:
    """Controls, player, code pane, panels and words around one Run; ``widget`` holds them all."""

    def __init__(self, runner: Run, controls: Sequence[str], panels: Sequence[PanelName] | None) -> None:
        """Lay everything out for a run; ``panels`` as in Lab, None for what suits the task."""
        self.runner = runner
        own = "this GPU" if runner.task.device.startswith("cuda") else "none"
        self.controls = lab_controls(controls, tasks.names(), self.turn, own=own)
        self.player = Player(self._tick, self.draw, self.step, self.update, self.reset, with_speed="speed" in controls)
        self.code = CodePane(self.edit, editable="edit" in controls)
        self.words = widgets.HTML()
        self._panels = panels
        self._doctor = LiveDoctor()
        self._note = runner.task.title
        self._card = ""  # the one that was chosen
        self._oom_message = ""
        self._memory_due = False  # the loop has changed, and its memory has not been looked at since
        self._scenes = RunScenes(runner)
        self.screen = PanelStrip(self._scenes)
        body = widgets.Box([self.code.widget, self.screen.widget])
        body.add_class("gradlab-body")
        style = widgets.HTML(style_sheet())
        self.widget = widgets.VBox([style, self.controls.widget, self.player.widget, body, self.words])
        self.widget.add_class("gradlab")
        self.draw()

    # What the learner does --------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Run one statement."""
        self._guarded(self.runner.step)

    def update(self) -> None:
        """Run one update, or the rest of the one that was begun."""
        self.watch()
        self._guarded(functools.partial(self.runner.advance, updates=1))

    def reset(self) -> None:
        """Begin again: the same task, loop and seed."""
        self._guarded(self._begin_again)

    def turn(self, name: str, value: Any) -> None:
        """Turn a switch, or choose another task or card."""
        if name == "task":
            self._guarded(lambda: self._new_task(value))
        elif name == "card":
            self._guarded(lambda: self.compare_to_gpu(value))
        else:
            self._guarded(lambda: self.switch(self.runner.recipe.replace(**{name: value})))

    def edit(self, text: str) -> bool:
        """Take a text of the learner's own for the loop; return whether it was taken."""
        taken = False

        def take() -> None:
            nonlocal taken
            self._complete_update()
            self.runner.edit(text)
            self._doctor = LiveDoctor()
            self._memory_due = True
            taken = True
            self.say("This is your own loop now. Turning a switch brings the recipe's loop back.")

        self._guarded(take)
        return taken

    def switch(self, recipe: Recipe) -> None:
        """Go over to another recipe at once and say what has changed; LoopError if the update cannot be completed."""
        words = ", ".join(recipe.changes_from(self.runner.recipe)) or "nothing changed"
        if self._complete_update():
            words += f" (update {self.runner.updates:,} was completed first)"
        self.runner.switch(recipe)
        self._memory_due = True  # what the switch does to memory is seen in the next update
        if self.runner.restarted_optimizers:
            words += "; the optimizer is new, its state starts empty; weights and .grad stay"
        self.say(words)

    def compare_to_gpu(self, card: str) -> None:
        """Hold memory against a card by its name, or against none (""); ValueError for a name that is unknown."""
        self._scenes.card = (card, usable_bytes(card)) if card else None
        self._card = card
        held = self._scenes.capacity()
        self.say(
            f"Memory is held against {held[0]}: {bytes_text(held[1])}." if held else "Memory is held against no card."
        )

    # What is shown ----------------------------------------------------------------------------------------------------

    def panels(self) -> list[PanelName]:
        """Return the names of the panels to show now."""
        available = self._scenes.names()
        if self._panels is not None:  # another task may have no picture: its landscape stands in
            can = (*available, PanelName.SCALER)
            return [name if name in can else PanelName.LANDSCAPE for name in self._panels]
        third = next(n for n in (PanelName.SCALER, PanelName.PICTURE, PanelName.LANDSCAPE) if n in available)
        return [PanelName.LOSS, PanelName.GRADIENT, third, PanelName.MEMORY]

    @property
    def oom_message(self) -> str:
        """How memory ran out, "" if it did not or if other words have come since."""
        return self._oom_message if self._note == self._oom_message else ""

    def watch(self) -> None:
        """Have the run count bytes if somebody looks at them: when its panel is due, and once after each switch."""
        if self._memory_due:  # what is drawn between the switch and the next update shows nothing of it yet
            self._memory_due = False
            self.screen.draw_next(PanelName.MEMORY)
        looked_at = not self.player.playing or self.screen.due(PanelName.MEMORY)
        self.runner.watch_memory = PanelName.MEMORY in self.panels() and looked_at

    @property
    def warning(self) -> str:
        """What is wrong with the run, and with a loop of the learner's own; "" if nothing is."""
        return warning(self.runner) or (self._doctor.text() if self.runner.edited else "")

    def listening(self) -> AbstractContextManager[object]:
        """Let the doctor listen to a loop of the learner's own; a recipe's loop is known to be in order."""
        return self._doctor if self.runner.edited else nullcontext()

    def say(self, words: str) -> None:
        """Put words under the status line, from the next drawing on."""
        self._note = words

    def draw(self, *, skip_recent: bool = False, wrong: int = 0) -> None:
        """Bring everything up to date; ``wrong`` marks a line of the loop, ``skip_recent`` skips costly pictures."""
        with lock:
            self.controls.show(self.runner.recipe, task=self.runner.task.name, card=self._card)
            self.code.show(self.runner.source, self.runner.statement, wrong)
            self.screen.draw(self.panels(), skip_recent=skip_recent)
            state, alarm = status_line(self.runner), self.warning
            said = words(state, alarm, self._note, live=not self.player.playing)
            if said != self.words.value:
                self.words.value = said

    # How it is done ---------------------------------------------------------------------------------------------------

    def _guarded(self, action: Callable[[], object]) -> None:
        """Do something for the learner; what goes wrong is said in words, and the widgets show what is."""
        with lock:
            wrong = 0
            try:
                with self.listening():
                    action()
                if self.runner.done:
                    self._stop("The loop has come to its end. Reset begins it again.")
            except KeyboardInterrupt:
                self._stop("Interrupted.")
            except Exception as error:  # whatever it is: a traceback under a notebook cell helps nobody
                wrong = error.line if isinstance(error, LoopError) else 0
                if not self.handle_oom(error):
                    own = isinstance(error, LoopError)
                    self._stop(f"Your loop stopped at {error}" if own else f"{type(error).__name__}: {error}")
            self.draw(skip_recent=self.player.playing, wrong=wrong)

    def handle_oom(self, error: Exception) -> bool:
        """Explain and clean up if memory ran out; return whether that was it."""
        if find_oom(error) is None:
            return False
        self._oom_message = explain_oom(self.runner, error)
        self._stop(self._oom_message)
        free_after_oom(self.runner, error)
        return True

    def _stop(self, words: str) -> None:
        self.player.pause()
        self.say(words)

    def _tick(self) -> None:
        """Do what is due since the last tick: a statement, some updates, or a slice of time."""
        with lock:
            due = self.player.due() if self.player.playing else {}  # it may have waited for a Pause or a Reset
            if "statements" in due:
                self.step()
            elif due:
                self.watch()
                self._guarded(functools.partial(self.runner.advance, **due))

    def _complete_update(self) -> bool:
        """Complete the update under way: a loop cannot change inside one, and the text shown must be what runs."""
        if self.runner.at_boundary:
            return False
        self.runner.advance(updates=1)
        return True

    def _begin_again(self) -> None:
        self.player.pause()
        self.runner.reset()
        self._start_showing(self.runner.task.title)

    def _new_task(self, name: str) -> None:
        self.player.pause()
        task = tasks.get(name)
        runner = Run(task, self.runner.recipe.replace(lr=task.lr))
        self.runner.close()
        self.runner = runner
        self._start_showing(f"{task.title}. A new run, with lr {task.lr:g} for this task.")

    def _start_showing(self, words: str) -> None:
        self.code.forget_changes()
        self._doctor = LiveDoctor()
        card, self._scenes = self._scenes.card, RunScenes(self.runner)
        self._scenes.card = card
        self.screen.set_source(self._scenes)
        self.say(words)

"""The Lab: a loop that is shown, run, switched and drawn live."""

from __future__ import annotations

import base64
import functools
import html
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ipywidgets as widgets
from tqdm.auto import tqdm

from .. import tasks
from ..presets import PRESETS
from ..probes import PANELS, Probes
from ..readout import readout, warning
from ..recipe import Recipe
from ..run import Run
from ..stepper import LoopError
from . import controls as switches
from .code import CodePane
from .page import page
from .player import Player
from .screen import Screen
from .theme import style_sheet

_SLICE = 0.02  # seconds of training between two frames


class Lab:
    """An interactive training loop: switches, the loop's text, and pictures of what it does.

    ``task`` is a Task or the name of one (None: digits), ``recipe`` a Recipe (None: the default at the task's ``lr``).
    ``controls`` and ``panels`` are lists of names, to show only what a lesson needs. Raises TypeError or ValueError
    that names the field, the value and what is allowed.
    """

    def __init__(
        self,
        task: Any = None,
        recipe: Recipe | None = None,
        controls: Sequence[str] | None = None,
        panels: Sequence[str] | None = None,
    ) -> None:
        """Build the run and its widgets."""
        self._panels = _names("panels", panels, PANELS)
        chosen = _names("controls", controls, switches.NAMES)
        chosen = switches.NAMES if chosen is None else chosen
        self.runner = Run(_task(task), recipe)
        """The Run that is shown."""
        if self._panels is not None and not self._panels:
            raise ValueError(
                f"Lab: panels must be one or more names out of {', '.join(PANELS)}, got {list(self._panels)!r}"
            )
        if "picture" in (self._panels or ()) and self.runner.task.picture not in ("boundary", "samples"):
            raise ValueError(
                f"Lab: panels of the task {self.runner.task.name!r} can be any but 'picture', got 'picture'"
            )
        self._note = self.runner.task.title
        self._owed = 0.0
        self._last = 0.0
        self._controls = switches.Controls(chosen, tasks.names(), self._turned)
        self._player = Player(
            self._tick,
            self._paused,
            self.step,
            lambda: self._act(self._one_update),
            self.reset,
            with_speed="speed" in chosen,
        )
        self._code = CodePane(self._edited, editable="edit" in chosen)
        self._words = widgets.HTML()
        self._probes = Probes(self.runner)
        self._screen = Screen(self._probes)
        body = widgets.Box([self._code.widget, self._screen.widget])
        body.add_class("gradlab-body")
        self.widget = widgets.VBox(
            [widgets.HTML(style_sheet()), self._controls.widget, self._player.widget, body, self._words]
        )
        self.widget.add_class("gradlab")
        self._draw()

    @classmethod
    def preset(cls, name: str) -> Lab:
        """Return a Lab set up to show something by name, such as ``"forgot zero_grad"``."""
        if not isinstance(name, str) or name not in PRESETS:
            raise ValueError(f"Lab.preset: name must be one of {', '.join(map(repr, PRESETS))}, got {name!r}")
        preset = PRESETS[name]
        lab = cls(preset.task, preset.recipe, controls=preset.controls)
        lab._say(preset.say)
        return lab

    @property
    def text(self) -> str:
        """The state in words: one line, and a second one when something is wrong."""
        return "\n".join(line for line in (f"{self.runner.task.name}: {readout(self.runner)}", self.warning) if line)

    @property
    def warning(self) -> str:
        """What the warning chip says, "" when nothing is wrong."""
        return warning(self.runner)

    def run(self, updates: int = 1) -> Lab:
        """Run so many updates without a browser; a bar shows how far it is when it takes over a second."""
        if not isinstance(updates, int) or isinstance(updates, bool) or updates < 0:
            raise ValueError(f"Lab.run: updates must be a whole number from 0, got {updates!r}")
        self._watch()
        with tqdm(total=updates, desc="updates", delay=1, leave=False) as bar:
            left = updates
            while left and not self.runner.done:
                some = self.runner.advance(updates=min(left, 20))
                left -= some
                bar.update(some)
        self._draw()
        return self

    def step(self) -> None:
        """Run one statement."""
        self._act(self.runner.step)

    def switch(self, **changes: Any) -> Lab:
        """Turn switches as a learner would: ``lab.switch(zero_grad=False)``; a bad value is a ValueError."""
        self._switch(self.runner.recipe.replace(**changes))
        self._draw()
        return self

    def reset(self) -> None:
        """Begin again: the same task, loop and seed."""
        self._act(self._begin_again)

    def save(self, path: str | Path) -> Path:
        """Write the pictures as ``.png``, or the page with loop, pictures and words as ``.html``; return the path."""
        target = Path(path)
        if target.suffix == ".png":
            target.write_bytes(self._screen.sheet())
        elif target.suffix == ".html":
            target.write_text(
                page(self.runner.source, self.runner.line, self._screen.sheet(), self.text), encoding="utf-8"
            )
        else:
            raise ValueError(f"Lab.save: path must end in .png or .html, got {str(path)!r}")
        return target

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Give the live view, and beside it the picture and the words that a saved notebook keeps."""
        return {
            "application/vnd.jupyter.widget-view+json": {
                "version_major": 2,
                "version_minor": 0,
                "model_id": self.widget.model_id,
            },
            "image/png": base64.b64encode(self._screen.sheet()).decode(),
            "text/plain": self.text,
        }

    # What the widgets call --------------------------------------------------------------------------------------------

    def _act(self, action: Callable[[], object]) -> None:
        """Do something for the learner: what goes wrong is said in words and nothing is drawn half."""
        wrong = 0
        try:
            action()
        except LoopError as error:
            self._player.pause()
            wrong = error.line
            self._say(f"Your loop stopped at {error}")
        except Exception as error:
            self._player.pause()
            self._say(f"{type(error).__name__}: {error}")
        self._draw(hurried=self._player.playing, wrong=wrong)

    def _tick(self) -> None:
        now = time.perf_counter()
        passed, speed = min(now - self._last, 0.5), self._player.updates_per_second
        if speed == 0.0:
            if passed >= self._player.statement_every:
                self._last = now
                self._act(self.runner.step)
            return
        self._last = now
        self._watch()
        if speed == float("inf"):
            self._act(functools.partial(self.runner.advance, seconds=_SLICE))
            return
        self._owed += passed * speed
        if (whole := int(self._owed)) > 0:
            self._owed -= whole
            self._act(functools.partial(self.runner.advance, updates=whole))

    def _paused(self) -> None:
        self._draw()

    def _one_update(self) -> None:
        self._watch()
        self.runner.advance(updates=1)

    def _begin_again(self) -> None:
        self._player.pause()
        self._code.forget_changes()
        self.runner.reset()
        self._say(self.runner.task.title)
        self._new_screen()

    def _turned(self, name: str, value: Any) -> None:
        if name == "task":
            self._act(lambda: self._new_task(value))
        else:
            self._act(lambda: self._switch(self.runner.recipe.replace(**{name: value})))
        self._controls.show(self.runner.task.name, self.runner.recipe)

    def _switch(self, recipe: Recipe) -> None:
        before = self.runner.recipe
        words = ", ".join(recipe.changes_from(before))
        finished = not self.runner.at_boundary
        if (
            finished
        ):  # a loop cannot change in mid-update: complete this one, so that the text shown is the text that runs
            self.runner.advance(updates=1)
        self.runner.switch(recipe)
        if finished:
            words += f" (update {self.runner.updates:,} was completed first)"
        if self.runner.fresh_optimizers:
            words += "; the optimizer is new, its state starts empty; weights and .grad stay"
        self._say(words or "nothing changed")

    def _new_task(self, name: str) -> None:
        self._player.pause()
        task = tasks.get(name)
        recipe = self.runner.recipe.replace(lr=task.lr)
        self.runner.close()
        self.runner = Run(task, recipe)
        self._code.forget_changes()
        self._say(f"{task.title}. A new run, with lr {task.lr:g} for this task.")
        self._new_screen()

    def _edited(self, text: str) -> bool:
        taken = False

        def take() -> None:
            nonlocal taken
            if not self.runner.at_boundary:
                self.runner.advance(updates=1)
            self.runner.edit(text)
            taken = True
            self._say("This is your own loop now. Turning a switch brings the recipe's loop back.")

        self._act(take)
        return taken

    # What is shown ----------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        self.runner.watch_memory = "memory" in self._names_shown()

    def _names_shown(self) -> Sequence[str]:
        available = self._probes.names()
        if self._panels is not None:  # another task may have no picture: its landscape stands in
            return [name if name in (*available, "scaler") else "landscape" for name in self._panels]
        third = next(name for name in ("scaler", "picture", "landscape") if name in available)
        return ("loss", "gradient", third, "memory")

    def _new_screen(self) -> None:
        self._probes = Probes(self.runner)
        self._screen.renew(self._probes)

    def _say(self, words: str) -> None:
        self._note = words

    def _draw(self, *, hurried: bool = False, wrong: int = 0) -> None:
        self._controls.show(self.runner.task.name, self.runner.recipe)
        self._code.show(self.runner.source, self.runner.statement, wrong)
        self._screen.draw(self._names_shown(), hurried=hurried)
        alarm = self.warning
        chip = f'<div><span class="gl-chip" role="alert">⚠ {html.escape(alarm)}</span></div>' if alarm else ""
        live = "off" if self._player.playing else "polite"
        words = (
            f'<div class="gl-words"><div role="status" aria-live="{live}">{html.escape(readout(self.runner))}</div>'
            f'{chip}<div class="gl-note">{html.escape(self._note)}</div></div>'
        )
        if words != self._words.value:
            self._words.value = words


def _task(task: Any) -> Any:
    if task is None or isinstance(task, str):
        return tasks.get("digits" if task is None else task)
    if not isinstance(task, tasks.Task):
        raise TypeError(f"Lab: task must be a Task or one of {', '.join(map(repr, tasks.names()))}, got {task!r}")
    return task


def _names(field: str, given: Any, allowed: Sequence[str]) -> tuple[str, ...] | None:
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"Lab: {field} must be a list of names out of {', '.join(allowed)}, got {given!r}")
    for name in given:
        if name not in allowed:
            raise ValueError(f"Lab: {field} must be names out of {', '.join(allowed)}, got {name!r}")
    return tuple(dict.fromkeys(given))

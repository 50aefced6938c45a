"""The controller of a Lab: hands what the learner does to the run, and answers with frames of what the run did."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from .. import tasks
from .._process import lock
from ..doctor import LiveDoctor
from ..drawing import Drawing
from ..forecast import usable_bytes
from ..formatting import bytes_text
from ..loop import SWITCHES, LoopError, Place, Program, Recipe, Run, begin_again_for, go_on_to, place_of
from ..scenes import PanelName, RunScenes, explain_oom, find_oom, free_after_oom, status_line, warning
from .answers import INTERRUPTED, answer_request
from .code import changed_lines, coloured
from .controls import SPEEDS, USUAL_SPEED, lab_controls, switch_values, without_effect
from .frames import SIZE, Frame, FrameWriter, Pace, PanelDrawings, live_pace
from .python_state import python_state
from .requests import PanelSize, RequestError, cut_words, read_number

_AT_ONCE = 20  # updates between two looks at how far it is, of which the last one's memory is watched


class LabController:
    """One Run with what is shown around it; ``handle`` takes what the browser asks and returns the answer.

    It knows no widget: a Lab hands requests and answers to and fro.
    """

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
        self.interrupted = False
        """Set when the kernel is interrupted between two requests; the next request for frames ends the playing."""
        self.playing = False
        """True from the first request for frames to the end of playing."""
        self.stopped = False
        """True from the end of a playing that nobody paused to the next thing that is asked."""
        self.play_id: tuple[Any, Any] = (None, None)
        """The client that played last, and how it counts its playing."""
        self.ended_play: tuple[Any, Any] = (None, None)
        """The playing that ended by itself."""
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
        self._left_off: Place | None = None
        self.pace_at: Callable[..., Pace] = live_pace
        """How often what is costly is drawn."""
        self._scenes = RunScenes(runner)
        self.screen = PanelDrawings(self._scenes)
        self._scenes.watch_for(self.panels())
        self._writer = FrameWriter()

    def handle(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request of the browser (``front/README.md``); nothing is ever raised."""
        with lock:
            return answer_request(self, request)

    # What the learner does --------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Run one statement."""
        self._guarded(self.runner.step)

    def update(self) -> None:
        """Run one update, or the rest of the one that was begun."""
        self.advance_for(0.0)

    def step_for(self, every: float) -> None:
        """Run one statement; the frame of it will be seen for ``every`` ms."""
        self._now += every
        self.screen.pace = self.pace_at(every, full_speed=False)
        self.watch()
        self.step()

    def advance_for(self, every: float, **how: Any) -> None:
        """Run one update, or as ``how`` says to Run.advance; the frame of it will be seen for ``every`` ms."""
        self._now += every
        self.screen.pace = self.pace_at(every, full_speed="seconds" in how)
        self.watch()
        self._guarded(functools.partial(self.runner.advance, **(how or {"updates": 1})))

    def run_to_line(self, line: int) -> None:
        """Run statements until the one at this line of the loop has run."""
        if not any(s.line <= line <= s.last_line for s in self.runner.statements):
            raise RequestError(f"Line {line} is no statement of the loop.")

        def run() -> None:
            if not self.runner.step_to(line):
                self.say(f"The loop has not come to line {line} in two updates. Set-up runs only once.")

        self._guarded(run)

    def reset(self) -> None:
        """Go back to where a cell left off; a run that no cell has driven begins again."""
        self._guarded(self._go_back if self._left_off else self.begin_again)

    def restart(self) -> None:
        """Begin again: the same task, loop, seed and start."""
        self._guarded(self.begin_again)

    def leave_off(self) -> None:
        """Have Reset come back to where the run is now: a cell has driven it here."""
        self._left_off = place_of(self.runner)

    def advance_to(self, updates: int, done: Callable[[int], object] = lambda some: None) -> None:
        """Train to this update without a browser; ``done`` is told of every few updates that are made."""
        if self.runner.updates < updates:
            self.watch()
        while self.runner.updates < updates and not self.runner.done:
            with lock, self.listening():
                done(self.runner.advance(updates=min(updates - self.runner.updates, _AT_ONCE)))

    def _go_back(self) -> None:
        place = self._left_off
        if place is None:
            return
        begin_again_for(self.runner, place)
        self.runner.watch_memory = False  # as at the start
        self._start_showing(f"Back at update {place.updates:,}, where the cell left off.")
        go_on_to(self.runner, place, self.advance_to)

    def begin_again(
        self, weights: Sequence[float] | None = None, words: str = "", *, keep_scenes: bool = False
    ) -> None:
        """Begin again, at these weights if they are given; ValueError if they are not as many as the model has.

        ``keep_scenes`` leaves the view of a landscape as it is, so that what is dragged stays under the pointer.
        """
        self.runner.reset(self.runner.start_weights if weights is None else weights)
        self._start_showing(words or self.runner.task.title, keep_scenes=keep_scenes)

    def turn(self, name: str, value: Any) -> None:
        """Turn a switch, or choose another task or card; ``value`` as it was chosen or typed."""
        self._writer.tell_again(name)  # a field goes back to what is the case if its value is refused
        if name == "task":
            self._guarded(lambda: self._new_task(value))
        elif name == "card":
            self._guarded(lambda: self._choose_card(value))
        else:
            self._guarded(lambda: self._turn_switch(name, value))

    def edit(self, text: str) -> bool:
        """Take a text of the learner's own for the loop; return whether it was taken."""
        taken = False

        def take() -> None:
            nonlocal taken
            self.take_loop(text)
            taken = True

        self._writer.tell_again("draft", "wrong")
        self._draft, self._wrong = text, 0
        self._guarded(take)
        if taken:
            self._draft = ""
        return taken

    def take_loop(self, text: str) -> None:
        """Run a text of the learner's own from now on; a LoopError names the line of a mistake."""
        Program(text)  # a mistake that is seen at once changes nothing
        self._complete_update()
        self.runner.edit(text)
        self._doctor = LiveDoctor()
        self._memory_due = True
        self.say("This is your own loop now. Turning a switch brings the recipe's loop back.")

    def switch(self, recipe: Recipe) -> None:
        """Go over to another recipe at once and say what has changed; LoopError if the update cannot be completed."""
        words = ", ".join(recipe.changes_from(self.runner.recipe)) or "nothing changed"
        if self._complete_update():
            words += f" (update {self.runner.updates:,} was completed first)"
        self.runner.switch(recipe)
        self._wrong = 0
        self._memory_due = True  # what the switch does to memory is seen in the next update
        if self.runner.restarted_optimizers:
            words += "; the optimizer is new, its state starts empty; weights and .grad stay"
        self.say(words)

    def compare_to_gpu(self, card: str) -> None:
        """Hold memory against a card by its name, or against none (""); ValueError for a name that is unknown."""
        self._scenes.card = (card, usable_bytes(card)) if card else None
        self._card = card
        self.screen.draw_next(PanelName.MEMORY)
        held = self._scenes.capacity()
        self.say(
            f"Memory is held against {held[0]}: {bytes_text(held[1])}." if held else "Memory is held against no card."
        )

    def drag(self, name: str, x: float, y: float) -> None:
        """Begin again with the two weights where they were dragged."""
        if name != "weights" or not self.runner.has_two_weights:
            raise RequestError(f"what can be dragged are the weights of a model of two, got {name!r}")
        words = "Begun again from where you put the weights."
        self._left_off = None  # Reset goes there from now on
        self._guarded(lambda: self.begin_again((x, y), words, keep_scenes=True))

    def zoom(self, low: Any, high: Any) -> None:
        """Show the loss from one update to another; None for all."""
        if low is None or high is None:
            self.screen.zoom = None
            return
        first, last = sorted((read_number({"low": low}, "low"), read_number({"high": high}, "high")))
        if last - first < 2 or last <= 0:
            raise RequestError("Zoom in on at least two updates.")
        self.screen.zoom = (max(first, 0.0), last)

    def press(self, what: str) -> None:
        """Say of a batch which one it is, and whether a step has applied it."""
        kind, _, batch = what.partition(" ")
        if kind != "batch" or not batch.isascii() or not batch.isdigit():
            raise RequestError(f"what can be pressed is a batch, got {what!r}")
        self.say(self._scenes.about_batch(int(batch)))

    def resize(self, size: PanelSize) -> None:
        """Lay panels out for these sizes from now on."""
        self.screen.size = size

    # What is shown ----------------------------------------------------------------------------------------------------

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
        key = (runner, runner.recipe, runner.source, self._card)
        if key != self._settings_key:
            self._settings_key = key
            own = "this GPU" if runner.task.device.startswith("cuda") else "none"
            self._last_settings = {
                "code": {"source": runner.source, "html": coloured(runner.source)},
                "controls": lab_controls(self.controls, tasks.names(), own, runner.recipe),
                "values": {**switch_values(runner.recipe), "task": runner.task.name, "card": self._card},
                "off": without_effect(runner.recipe),
                "speeds": [list(speed) for speed in SPEEDS] if "speed" in self.controls else [],
                "speed": dict(SPEEDS)[self.speed],
                "editable": "edit" in self.controls,
            }
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

    # How it is done ---------------------------------------------------------------------------------------------------

    def _guarded(self, action: Callable[[], object]) -> None:
        """Do something for the learner; what goes wrong is said in words, and the frame shows what is."""
        with lock:
            try:
                with self.listening():
                    action()
                if not self._draft:
                    self._wrong = 0
                if self.runner.done:
                    self.stop("The loop has come to its end. Reset begins it again.")
            except KeyboardInterrupt:
                self.stop(INTERRUPTED)
            except RequestError:
                raise
            except Exception as error:  # whatever it is: a traceback under a notebook cell helps nobody
                self._wrong = error.line if isinstance(error, LoopError) else 0
                if not self.handle_oom(error):
                    self._tell_error(error)

    def handle_oom(self, error: Exception) -> bool:
        """Explain and clean up if memory ran out; return whether that was it."""
        if find_oom(error) is None:
            return False
        self._oom_message = explain_oom(self.runner, error)
        self.stop(self._oom_message)
        free_after_oom(self.runner, error)
        return True

    def _tell_error(self, error: Exception) -> None:
        if not isinstance(error, LoopError):
            self.stop(f"{type(error).__name__}: {error}")
            return
        if error.text and error.text != self.runner.source:  # the loop before runs again; the text that failed is kept
            self._draft = error.text
        self.stop(f"Your loop stopped at {error}")

    def stop(self, words: str) -> None:
        """End the playing, and say why."""
        self.playing = self.interrupted = False
        self.stopped, self.ended_play = True, self.play_id
        self.say(words)

    def _turn_switch(self, name: str, value: Any) -> None:
        try:
            if name not in SWITCHES:
                raise ValueError(f"Recipe: a switch must be one of {', '.join(SWITCHES)}, got {name!r}")
            recipe = self.runner.recipe.replace(**{name: SWITCHES[name].read(name, value)})
        except ValueError as error:
            kept = SWITCHES[name].text(getattr(self.runner.recipe, name)) if name in SWITCHES else ""
            stays = f". It stays at {kept}." if kept else ""
            raise RequestError(f"{cut_words(str(error).removeprefix('Recipe: '))}{stays}") from error
        self.switch(recipe)

    def _choose_card(self, card: Any) -> None:
        try:
            if not isinstance(card, str):
                raise ValueError(f"card must be a text, got {card!r}")
            self.compare_to_gpu(card)
        except ValueError as error:
            raise RequestError(str(error)) from error

    def _complete_update(self) -> bool:
        """Complete the update under way: a loop cannot change inside one, and the text shown must be what runs."""
        if self.runner.at_boundary:
            return False
        self.runner.advance(updates=1)
        return True

    def _new_task(self, name: str) -> None:
        try:
            task = tasks.get(name)
        except (TypeError, ValueError) as error:
            raise RequestError(f"task: {error}") from error
        runner = Run(task, self.runner.recipe.replace(lr=task.lr))
        self.runner.close()
        self.runner, self._task_text, self._left_off = runner, repr(name), None
        self._start_showing(f"{task.title}. A new run, with lr {task.lr:g} for this task.")

    def _start_showing(self, words: str, *, keep_scenes: bool = False) -> None:
        self._source, self._changed, self._wrong = self.runner.source, [], 0
        self._doctor = LiveDoctor()
        if not keep_scenes:
            card, self._scenes = self._scenes.card, RunScenes(self.runner)
            self._scenes.card = card
            size, self.screen = self.screen.size, PanelDrawings(self._scenes)
            self.screen.size = size
            self._scenes.watch_for(self.panels())
        self.screen.zoom = None
        self.say(words)

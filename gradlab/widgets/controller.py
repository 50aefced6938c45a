"""The controller of a Lab: hands what the learner does to the run, and answers with frames of what the run did."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import tasks
from .._process import lock
from ..doctor import LiveDoctor
from ..forecast import usable_bytes
from ..formatting import bytes_text
from ..loop import SWITCHES, LoopError, Program, Recipe, Run, begin_again_for, go_on_to, run_point
from ..scenes import PanelName, explain_oom, find_oom, free_after_oom
from .answers import INTERRUPTED, answer_request
from .controls import UNSWITCHED, USUAL_EVERY
from .requests import RequestError, cut_words, read_number
from .shown_run import ShownRun

_READ_ALONG = 350.0  # ms for which what is done step by step is looked at, at least
_AT_ONCE = 20  # updates between two looks at how far it is, of which the last one's memory is watched


class LabController(ShownRun):
    """One Run with what is shown around it; ``handle`` takes what the browser asks and returns the answer.

    It knows no widget: a Lab hands requests and answers to and fro.
    """

    def __init__(
        self, runner: Run, controls: Sequence[str], panels: Sequence[PanelName] | None, *, named: bool = True
    ) -> None:
        """Look at a run; ``panels`` as in Lab, None for what suits the task.

        ``named`` says that the name of the run's task is all that is needed to get it again.
        """
        super().__init__(runner, controls, panels, named=named)
        self.interrupted = False
        """Set when the kernel is interrupted between two requests; the next request for frames ends the playing."""
        self.play_id: tuple[Any, Any] = (None, None)
        """The client that played last, and how it counts its playing."""
        self.ended_play: tuple[Any, Any] = (None, None)
        """The playing that ended by itself."""

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
        if "seconds" in how:
            self.unswitched.end("at full speed it is left out")
        self._guarded(functools.partial(self.runner.advance, **(how or {"updates": 1})), every or _READ_ALONG)

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
        self._left_off = run_point(self.runner)

    def advance_to(self, updates: int, done: Callable[[int], object] = lambda some: None) -> None:
        """Train to this update without a browser; ``done`` is told of every few updates that are made."""
        if self.runner.updates < updates:
            self.watch()
        while self.runner.updates < updates and not self.runner.done:
            with lock, self.listening():
                some = self.runner.advance(updates=min(updates - self.runner.updates, _AT_ONCE))
                self.unswitched.follow(some * USUAL_EVERY)
            done(some)

    def _go_back(self) -> None:
        point = self._left_off
        if point is None:
            return
        begin_again_for(self.runner, point)
        self.runner.watch_memory = False  # as at the start
        self._start_showing(f"Back at update {point.updates:,}, where the cell left off.")
        go_on_to(self.runner, point, self.advance_to, self._take)

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
        if name == UNSWITCHED:
            self.unswitched.wanted = value is True
        elif name == "task":
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
        self._take(text)
        self._doctor = LiveDoctor()
        self._memory_due = True
        self.say("This is your own loop now. Turning a switch brings the recipe's loop back.")

    def switch(self, recipe: Recipe) -> None:
        """Go over to another recipe at once and say what has changed; LoopError if the update cannot be completed."""
        words = ", ".join(recipe.changes_from(self.runner.recipe)) or "nothing changed"
        if self._complete_update():
            words += f" (update {self.runner.updates:,} was completed first)"
        self._take(recipe)
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

    # How it is done ---------------------------------------------------------------------------------------------------

    def _guarded(self, action: Callable[[], object], every: float = _READ_ALONG) -> None:
        """Do something for the learner that is seen for ``every`` ms; what goes wrong is said in words."""
        with lock:
            try:
                with self.listening():
                    action()
                self.unswitched.follow(every)
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
        self.unswitched.end("then memory ran out")
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

    def _take(self, loop: Recipe | str) -> None:
        """Go over to another loop, and have the run without a switch begin or end there."""
        if isinstance(loop, str):
            self.runner.edit(loop)
            self.unswitched.forget()
            return
        with self.unswitched.through_switch(loop):
            self.runner.switch(loop)

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

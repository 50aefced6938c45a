"""What is done to the run of a Lab, by its learner, by a cell or for a recording; what goes wrong is raised."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .. import tasks
from .._checks import one_of
from .._process import lock, main_thread
from ..formatting import number_of
from ..loop import LoopError, Program, Recipe, Run, begin_again_for, go_on_to, run_point
from ..scenes import explain_oom, find_oom, free_after_oom
from .requests import RequestError
from .shown_run import ShownRun

USUAL_EVERY = 1000 / 60
"""ms for which an update is seen at the usual speed."""
_LONG_UPDATE = "An update is under way for over a second"
_READ_ALONG = 350.0  # ms for which what is done step by step is looked at, at least
REQUEST_LIMIT = 1.0
"""Seconds of training for one request of a browser: cells wait meanwhile."""
_AT_ONCE = 20  # updates between two looks at how far it is, of which the last one's memory is watched


class RunDriver:
    """Trains the run that is shown, and changes its loop, its task and where it begins."""

    def __init__(self, shown: ShownRun) -> None:
        self._shown = shown

    @property
    def runner(self) -> Run:
        """The run."""
        return self._shown.runner

    # Training ---------------------------------------------------------------------------------------------------------

    def step(self, statements: int = 1, every: float = _READ_ALONG) -> None:
        """Run so many statements, each of which is seen for ``every`` ms."""

        def run() -> None:
            for _ in range(statements):
                self.runner.step()

        self._train(run, statements * every)

    def step_for(self, every: float) -> None:
        """Run one statement while the lab is played; the frame of it will be seen for ``every`` ms."""
        self._shown.pass_time(every, full_speed=False)
        self.step()

    def advance_for(
        self, every: float, *, updates: int = 1, seconds: float | None = None, limit: float = math.inf
    ) -> None:
        """Run updates, or as many as begin within some seconds; the frame of them will be seen for ``every`` ms.

        After ``limit`` seconds it stops, within an update if need be, and says so.
        """
        self._shown.pass_time(every, full_speed=seconds is not None)
        if seconds is not None:
            self._shown.unswitched.end("at full speed it is left out")
        amount = {"updates": updates} if seconds is None else {"seconds": seconds}
        self._train(lambda: self.runner.advance(**amount, limit=limit), every or _READ_ALONG)
        self._tell_long_update()

    def _tell_long_update(self) -> None:
        """Say that an update is under way for long, until it is done."""
        runner, shown = self.runner, self._shown
        if runner.at_boundary and shown.note.startswith(_LONG_UPDATE):
            shown.say("")
        elif not runner.at_boundary:
            ran = f"{_LONG_UPDATE}: {number_of(runner.statements_since_update, 'statement')} since the last one."
            shown.say(f"{ran} Does your loop call step()?" if runner.edited else ran)

    def advance_to(self, updates: int, done: Callable[[int], object] = lambda some: None) -> None:
        """Train to this update without a browser; ``done`` is told of every few updates that are made."""
        if self.runner.updates < updates:
            self._shown.count_bytes_if_seen()
        while self.runner.updates < updates and not self.runner.done:
            with main_thread.hold(), lock, self._shown.listening():
                some = self.runner.advance(updates=min(updates - self.runner.updates, _AT_ONCE))
                self._shown.unswitched.follow(some * USUAL_EVERY)
            main_thread.serve()
            done(some)

    def run_to_line(self, line: int) -> None:
        """Run statements until the one at this line of the loop has run."""
        if not any(s.line <= line <= s.last_line for s in self.runner.statements):
            raise RequestError(f"Line {line} is no statement of the loop.")

        def run() -> None:
            if not self.runner.step_to(line, limit=REQUEST_LIMIT):
                self._shown.say(f"The loop has not come to line {line} in two updates. Set-up runs only once.")

        self._train(run, _READ_ALONG)

    def _train(self, action: Callable[[], object], every: float) -> None:
        """Have the run do something that is seen for ``every`` ms, and the run without the newest switch keep pace."""
        with main_thread.hold(), lock:
            with self._shown.listening():
                action()
            self._shown.unswitched.follow(every)
            if not self._shown.draft:
                self._shown.wrong = 0

    # Beginning again --------------------------------------------------------------------------------------------------

    def begin_again(self, weights: Sequence[float] | None = None, words: str = "", *, keep_view: bool = False) -> None:
        """Begin again, at these weights if they are given; ValueError if they are not as many as the model has.

        ``keep_view`` leaves the view of a landscape as it is, so that what is dragged stays under the pointer.
        """
        self.runner.reset(self.runner.start_weights if weights is None else weights)
        self._shown.show(self.runner, words or self.runner.task.title, keep_view=keep_view)

    def leave_off(self) -> None:
        """Have Reset come back to where the run is now: a cell has driven it here."""
        self._shown.left_off = run_point(self.runner)

    def go_back(self) -> None:
        """Go back to where a cell left off; a run that no cell has driven begins again."""
        point = self._shown.left_off
        if point is None:
            self.begin_again()
            return
        begin_again_for(self.runner, point)
        self.runner.watch_memory = False  # as at the start
        self._shown.show(self.runner, f"Back at update {point.updates:,}, where the cell left off.")
        go_on_to(self.runner, point, self.advance_to, self._take)

    def new_task(self, name: object) -> None:
        """Go over to another task; RequestError for a name that there is not."""
        try:
            task = tasks.get(one_of("task", name, tasks.names(), kind=ValueError))
        except ValueError as error:
            raise RequestError(str(error)) from error
        runner = Run(task, self.runner.recipe.replace(lr=task.lr))
        self.runner.close()
        self._shown.left_off = None
        words = f"{task.title}. A new run, with lr {task.lr:g} for this task."
        self._shown.show(runner, words)

    # Another loop -----------------------------------------------------------------------------------------------------

    def switch(self, recipe: Recipe) -> None:
        """Go over to another recipe at once and say what has changed; LoopError if the update cannot be completed."""
        words = ", ".join(recipe.changes_from(self.runner.recipe)) or "nothing changed"
        if self.runner.complete_update():
            words += f" (update {self.runner.updates:,} was completed first)"
        self._take(recipe)
        self._shown.wrong = 0
        self._shown.memory_due = True  # what the switch does to memory is seen in the next update
        if self.runner.restarted_optimizers:
            words += "; the optimizer is new, its state starts empty; weights and .grad stay"
        self._shown.say(words)

    def edit(self, text: str) -> None:
        """Run a text of the learner's own from now on; a LoopError names the line of a mistake."""
        Program(text)  # a mistake that is seen at once changes nothing
        self.runner.complete_update()
        self._take(text)
        self._shown.listen_anew()
        self._shown.memory_due = True
        self._shown.say("This is your own loop now. Turning a switch brings the recipe's loop back.")

    def _take(self, loop: Recipe | str) -> None:
        """Go over to another loop, and have the run without a switch begin or end there."""
        if isinstance(loop, str):
            self.runner.edit(loop)
            self._shown.unswitched.forget()
            return
        with self._shown.unswitched.through_switch(loop):
            self.runner.switch(loop)

    # What goes wrong --------------------------------------------------------------------------------------------------

    def explain(self, error: Exception) -> str:
        """Return the words for what went wrong, and clean up where memory ran out.

        The line of a mistake is marked, and a text that failed is kept: the loop before runs again.
        """
        shown = self._shown
        shown.wrong = error.line if isinstance(error, LoopError) else 0
        if self.clean_up(error):
            return shown.oom_words
        if not isinstance(error, LoopError):
            return f"{type(error).__name__}: {error}"
        if error.text and error.text != self.runner.source:
            shown.draft = error.text
        return f"Your loop stopped at {error}"

    def clean_up(self, error: Exception) -> bool:
        """Explain and clean up if memory ran out; return whether that was it."""
        if find_oom(error) is None:
            return False
        self._shown.unswitched.end("then memory ran out")
        self._shown.oom_words = explain_oom(self.runner, error)
        self._shown.say(self._shown.oom_words)
        free_after_oom(self.runner, error)
        return True

"""A Lab's state: a Run with its panels and messages, what can be done to it, and its frames; it knows no widget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

from .. import tasks
from .._checks import one_of
from .._process import lock, main_thread
from ..doctor import LiveDoctor
from ..drawing import Drawing, Listing, Placed
from ..formatting import number_of
from ..loop import LONGEST_WINDOW, SWITCHES, Counterfactual, LoopError, Recipe, Run
from ..scenes import BEATS, PanelName, RunScenes, explain_oom, find_oom, free_after_oom, status_line, unapplied, warning
from .controls import PRESSED_LINE, lab_settings
from .frames import Frame, FrameWriter, Pace, PanelDrawings, RequestError, changed_lines, cut_words, live_pace
from .live import lab_rows

UPDATE_MS = 1000 / 60  # for which an update is seen at the usual speed
STATEMENT_MS = 350.0  # for which what is done statement by statement is seen, at least
REQUEST_SECONDS = 1.0  # of training at most for one request of a browser: cells wait meanwhile
INTERRUPTED = "Interrupted. Press Play to continue."
_OWN_LOOP = "This is your own loop now. Turning a switch brings the recipe's loop back."
_LONG_UPDATE = "An update is under way for over a second"
_NOTE_MS = 6000.0  # of playing for which a note is seen
_AT_ONCE = 20  # updates between two looks at how far it is, of which the last one's memory is watched


class LabModel:
    """A run with its switches, speed, panels and messages; ``frame`` tells the browser what has changed in them.

    ``panels`` and ``controls`` are as in Lab, ``panels`` None for what suits the task; ``fail`` tells what was raised.
    """

    def __init__(self, runner: Run, controls: Sequence[str], panels: Sequence[PanelName] | None, speed: str) -> None:
        self.controls, self.chosen_panels = controls, panels
        self.speed = speed  # the words of SPEEDS at which Play begins, until the learner chooses another
        self.pace_at: Callable[..., Pace] = live_pace  # how often what is costly is drawn
        self.plays_first = False  # whether the browser that shows it first plays it at once
        self.playing = False  # True from the first request for frames to the end of playing
        self.interrupted = False  # between two requests; the next request for frames ends the playing
        self.stopped = False  # from the end of a playing that nobody paused to the learner's next request
        self.play_id: tuple[Any, Any] = (None, None)  # the client that played last, and how it counts its playing
        self.stopped_play_id: tuple[Any, Any] = (None, None)  # the playing that ended by itself
        self.draft, self.wrong = "", 0  # a text that was not taken or that failed, and the line that is wrong
        self._now = 0.0  # ms on the clock of the pictures, which goes as fast as they are played
        self.note, self._note, self._note_ends = "", "", 0.0  # what the Lab has to say, what it said last, until when
        self.oom_words = ""  # how memory ran out
        self.unswitched: Counterfactual | None = None  # a copy that goes on without the newest switch
        self.unswitched_share = 0.1  # of a processor core that it may take
        self.writer = FrameWriter()
        self._reset_point: tuple[Sequence[tuple[int, Recipe | str]], Sequence[float] | None, int, int] | None = None
        self._memory_due = False  # the loop has changed, and its memory has not been looked at since
        self._words: dict[str, str] = {}  # what the newest frame tells
        self._gradient: Drawing | None = None  # beside which they were told
        self.show(runner)

    def show(self, runner: Run, words: str = "", *, keep_view: bool = False) -> None:
        """Show a run that begins; ``keep_view`` leaves a landscape as it is."""
        self.runner = runner
        self._source, self._changed = runner.source, list[int]()
        self.wrong, self._doctor = 0, LiveDoctor()
        if not keep_view:
            self.screen = PanelDrawings(RunScenes(runner))
            self.screen.scenes.watch_for(self.panels())
        self._forget_unswitched()
        self.note = words

    # What is shown ----------------------------------------------------------------------------------------------------

    def panels(self) -> list[PanelName]:
        """Return the names of the panels to show now."""
        names, scaler = self.screen.scenes.names(), PanelName.SCALER
        usual = next(name for name in (PanelName.PICTURE, PanelName.LANDSCAPE, PanelName.LOSS) if name in names)
        third = scaler if scaler in names else usual
        chosen = self.chosen_panels or [PanelName.LOSS, PanelName.GRADIENT, third, PanelName.MEMORY]
        return list(dict.fromkeys(name if name in (*names, scaler) else usual for name in chosen))  # of another task

    def drawings(self) -> list[Drawing]:
        """Return every panel as it is now, for a still picture."""
        return list(PanelDrawings(self.screen.scenes).draw(self.panels(), 0.0).values())

    def still(self) -> list[Placed]:
        """Return the picture of a lab: the warning above, the loop with its words, and the panels."""
        ran, words = self.runner.statement, (self.note, status_line(self.runner, whole=False))
        lit = range(ran.line, ran.last_line + 1)
        listing = partial(Listing, self.runner.source, lit=lit, changed=self.changed, words=[*filter(None, words)])
        return lab_rows(self.drawings(), listing, self.warning)

    @property
    def changed(self) -> list[int]:
        """The lines of the loop that the newest switch has changed."""
        if self.runner.source != self._source:
            self._changed = changed_lines(self._source, self.runner.source) if self._source else []
            self._source = self.runner.source
        return self._changed

    @property
    def warning(self) -> str:
        """What is wrong with the run, and with a loop of the learner's own; "" if nothing is."""
        return warning(self.runner) or (self._doctor.text() if self.runner.loop.is_edited else "")

    def frame(self, *, only_due: bool = False) -> Frame:
        """Return what has changed since the frame before; ``only_due`` leaves costly panels as they were."""
        ran, drawings = self.runner.statement, self.screen.draw(self.panels(), self._now, only_due=only_due)
        gradient = drawings.get(PanelName.GRADIENT)
        if not only_due or gradient is None or gradient is not self._gradient:  # the words and this one tell the same
            self._gradient = gradient
            if self.note != self._note:
                self._note_ends = self._now + _NOTE_MS
            elif self._now > self._note_ends:
                self.note = ""
            self._note = self.note
            now = unapplied(self.runner)
            note = (self.playing and now) or self.note or now or _OWN_LOOP * self.runner.loop.is_edited
            self._words = {"state": status_line(self.runner, whole=False), "alarm": self.warning, "note": note}
        frame = self.writer.write(
            drawings,
            updates=self.runner.updates,
            **self._words,
            lit=[ran.line, ran.last_line],
            changed=self.changed,
            wrong=self.wrong,
            draft=self.draft,
            left_off=self._reset_point[2] if self._reset_point else None,
            **lab_settings(self.runner, self.controls, self.speed),
        )
        return {**frame, "stop": True} if self.stopped else frame

    # Training ---------------------------------------------------------------------------------------------------------

    def run_statements(self, statements: int = 1, every: float = STATEMENT_MS) -> None:
        """Run statements, each of which is seen for ``every`` ms."""
        with self._training(statements * every):
            for _ in range(statements):
                self.runner.run_statement()

    def run_statement_for(self, every: float) -> None:
        """Run one statement while the lab is played; the frame of it will be seen for ``every`` ms."""
        self._begin_frame(every, full_speed=False)
        self.run_statements()

    @property
    def at_beat(self) -> bool:
        """Whether the statement that ran last changed ``.grad``, applied it, or ended an update."""
        return self.runner.statement.label in BEATS or self.runner.engine.at_boundary

    def run_beat_for(self, every: float) -> None:
        """Run statements to the next beat; the frames of the whole update will be seen for ``every`` ms."""
        self._begin_frame(every, full_speed=False)
        self._now -= every * (1 - 1 / len(BEATS))
        deadline = time.perf_counter() + REQUEST_SECONDS
        with self._training(every / len(BEATS)):
            self.runner.run_statement()
            while not (self.at_beat or self.runner.engine.done or time.perf_counter() > deadline):
                self.runner.run_statement()

    def advance_for(
        self, every: float, *, updates: int = 1, seconds: float | None = None, window: int | None = None
    ) -> None:
        """Run updates, or as many as begin within some seconds; the frame of them will be seen for ``every`` ms.

        Each batch of an update after more than ``window`` counts as one, in a loop of the learner's own at the latest
        after the most that it has taken. After a second it stops, within an update if need be, and says so.
        """
        self._begin_frame(every, full_speed=seconds is not None)
        if seconds is not None:
            self._end_unswitched("at full speed it is left out")
        amount = {"updates": updates} if seconds is None else {"seconds": seconds}
        engine = self.runner.engine
        window = window or (engine.loop.window if engine.loop.is_edited else LONGEST_WINDOW)
        with self._training(every or STATEMENT_MS):
            self.runner.advance(**amount, limit=REQUEST_SECONDS, window=window)
        if not (engine.at_boundary or engine.at_batch or self.interrupted):
            self.note = f"{_LONG_UPDATE}: {number_of(engine.statements_since_update, 'statement')}, and no step() yet."
        elif self.note.startswith(_LONG_UPDATE):
            self.note = ""

    def advance_to(self, updates: int, report: Callable[[int], object] = lambda count: None) -> None:
        """Train to this update without a browser; ``report`` gets the number of updates after every few of them."""
        if self.runner.updates < updates:
            self.note = ""
            self._count_bytes_if_seen()
        while self.runner.updates < updates and not self.runner.engine.done:
            count = min(updates - self.runner.updates, _AT_ONCE)
            with self._training(count * UPDATE_MS):
                count = self.runner.advance(updates=count)
            main_thread.serve()
            report(count)

    def run_to_line(self, line: int) -> None:
        """Run statements until the one at this line of the loop has run, for two updates at most."""
        runner = self.runner
        spans = ((s.line, s.last_line) for s in runner.loop.program.statements)
        wanted = min((span for span in spans if span[0] <= line <= span[1]), default=None)
        if wanted is None:
            raise RequestError(f"Line {line} is no statement of the loop.")
        with self._training(STATEMENT_MS):
            last, runner.engine.deadline = runner.updates + 2, time.perf_counter() + REQUEST_SECONDS
            while True:
                runner.run_statement()
                if (runner.statement.line, runner.statement.last_line) == wanted:
                    return
                if runner.engine.done or runner.updates >= last or time.perf_counter() > runner.engine.deadline:
                    break
            when = "in two updates" if runner.updates >= last else "yet"
            self.note = f"The loop has not come to line {line} {when}. Set-up runs only once."

    @contextmanager
    def _training(self, every: float) -> Iterator[None]:
        """Train in a block, which is seen for ``every`` ms, and have the run without the newest switch keep pace."""
        with main_thread.hold(), lock:
            # A recipe's loop is known to be in order.
            with self._doctor if self.runner.loop.is_edited else nullcontext():
                yield
            if self.unswitched is not None:
                self.unswitched.follow(self.runner.updates, self.unswitched_share * every)
            if not self.draft:
                self.wrong = 0

    def _begin_frame(self, every: float, *, full_speed: bool) -> None:
        """Get ready for a frame that will be seen for ``every`` ms, the next one of a lab that is played."""
        self._now += every
        self.screen.pace = self.pace_at(every, full_speed=full_speed)
        self._count_bytes_if_seen()

    def _count_bytes_if_seen(self) -> None:
        """Have the run count the bytes of a whole update where they are shown: when due, and once after each switch."""
        if not (self.runner.engine.at_boundary or self.runner.engine.at_batch):
            return
        if self._memory_due:  # what is drawn between the switch and the next update shows nothing of it yet
            self._memory_due = False
            self.screen.draw_next(PanelName.MEMORY)
        is_due = not self.playing or self.screen.due(PanelName.MEMORY, self._now)
        self.runner.watch_memory = PanelName.MEMORY in self.panels() and is_due

    # Beginning again --------------------------------------------------------------------------------------------------

    def begin_again(self, weights: Sequence[float] | None = None) -> None:
        """Begin again, at these weights if they are given; ValueError if they are not as many as the model has."""
        self.runner.reset(self.runner.start_weights if weights is None else weights)
        self.show(self.runner)

    def drag_weights(self, weights: Sequence[float]) -> None:
        """Begin again at these weights; Reset goes there from now on, and what is dragged stays under the pointer."""
        self._reset_point = None
        self.runner.reset(weights)
        self.show(self.runner, "Begun again from where you put the weights.", keep_view=True)

    def set_reset_point(self) -> None:
        """Have Reset come back to where the run is now: a cell has driven it here."""
        runner, statements = self.runner, self.runner.engine.statements_since_update
        point = tuple(runner.loops), runner.start_weights, runner.updates, statements
        self._reset_point = point if runner.updates or statements else None

    def go_back(self) -> None:
        """Go back to where a cell left off; a run that no cell has driven begins again."""
        if self._reset_point is None:
            self.begin_again()
            return
        loops, weights, updates, statements = self._reset_point
        self.runner.reset(weights, loops[0][1])
        self.runner.watch_memory = False  # as at the start
        self.show(self.runner)
        for update, loop in loops[1:]:  # a copy of tensors would not do: a loop of one's own keeps what it likes
            self.advance_to(update)
            self._change_loop(loop)
        self.advance_to(updates)
        for _ in range(statements):
            self.runner.run_statement()
        self.note = f"Back at update {updates:,}, where the cell left off."

    def new_task(self, name: object) -> None:
        """Go over to another task; RequestError for a name that there is not."""
        try:
            task = tasks.get(one_of("task", name, tasks.names(), kind=ValueError))
        except ValueError as error:
            raise RequestError(str(error)) from error
        runner = Run(task, self.runner.recipe.replace(lr=task.lr))
        self.runner.close()
        self._reset_point = None
        self.show(runner, f"A new run, with lr {task.lr:g} for this task.")

    # Another loop -----------------------------------------------------------------------------------------------------

    def switch(self, recipe: Recipe) -> None:
        """Go over to another recipe at once and say what has changed; LoopError if the update cannot be completed."""
        runner, before = self.runner, self.runner.updates
        self._change_loop(recipe)
        words = f"Update {runner.updates:,} was completed first. " if runner.updates > before else ""
        self.wrong = 0
        self._memory_due = True  # what the switch does to memory is seen in the next update
        if runner.restarted_optimizers:
            words += "The optimizer is new: its state starts empty, weights and .grad stay."
        self.note = words.strip()

    def edit(self, text: str) -> None:
        """Run a text of the learner's own from now on; a LoopError names the line of a mistake."""
        self._change_loop(text)
        self._doctor = LiveDoctor()  # it forgets what it has heard: another loop runs
        self._memory_due = True
        self.note = ""

    def _change_loop(self, loop: Recipe | str) -> None:
        """Go over to another loop; a recipe's run goes on in a copy without the switch, too."""
        runner, copy = self.runner, None
        if isinstance(loop, str):
            runner.edit(loop)
        elif loop == runner.recipe:
            runner.switch(loop)
            return
        else:
            runner.complete_update()
            if runner.watch_gradients:
                self.screen.scenes.gradient()  # its scale is kept for when this loop comes back
            if not runner.loop.is_edited and self._shows_unswitched():
                copy = self.unswitched
                if copy is None or copy.begun != runner.updates:  # two switches at one update count as one
                    copy = None
                    with suppress(Exception):  # no memory is left for it, or the learner's own model has no copy
                        copy = runner.unswitched()
            runner.switch(loop)
            if copy is not None:
                copy.switched = ", ".join(copy.recipe.changes_from(loop))
        if copy is None or not copy.switched:
            self._forget_unswitched()
        else:
            self.unswitched = self.screen.scenes.unswitched = copy
            if PanelName.HELD_OUT in self.panels():
                self.screen.scenes.watch_unswitched(copy)

    # Without the newest switch ----------------------------------------------------------------------------------------

    def _shows_unswitched(self) -> bool:
        """Is there a loss to show, and a switch to turn, and no GPU's memory, whose allocator would count the copy?"""
        panels = self.panels()
        loss = PanelName.LOSS in panels or PanelName.HELD_OUT in panels
        counted = PanelName.MEMORY in panels and self.runner.task.device.startswith("cuda")
        return loss and not counted and not {*SWITCHES, PRESSED_LINE}.isdisjoint(self.controls)

    def _end_unswitched(self, why: str) -> None:
        """Have the copy go no further; its curve stays."""
        if self.unswitched is not None:
            self.unswitched.end(why)

    def _forget_unswitched(self) -> None:
        self._end_unswitched("no longer shown")
        self.unswitched = self.screen.scenes.unswitched = None

    # What goes wrong --------------------------------------------------------------------------------------------------

    def stop(self, words: str) -> None:
        """End the playing, and say why."""
        self.playing = self.interrupted = False
        self.stopped, self.stopped_play_id = True, self.play_id
        self.note = words

    def stop_if_done(self) -> None:
        """End the playing where the loop has come to its end."""
        if self.runner.engine.done:
            self.stop("The loop has come to its end. Reset begins it again.")

    def fail(self, error: Exception | KeyboardInterrupt) -> None:
        """Say what went wrong; a bad request ends no playing, a text that failed stays open with its line marked."""
        if isinstance(error, RequestError):
            self.note = cut_words(str(error))
        elif isinstance(error, KeyboardInterrupt):
            main_thread.interrupted = True
            self.stop(INTERRUPTED)
            if self.runner.source != self._source:  # that loop has made no update, so the one before is back
                self.draft = self._source
        else:
            self.wrong = error.line if isinstance(error, LoopError) else 0
            words = self.clean_up(error)
            if not words and isinstance(error, LoopError):
                words = f"Your loop stopped at {error}"
                self.draft = error.text if error.text and error.text != self.runner.source else self.draft
            self.stop(words or f"{type(error).__name__}: {error}")

    def clean_up(self, error: Exception) -> str:
        """Clean up if memory ran out, and return the words for it; "" if it was something else."""
        if find_oom(error) is None:
            return ""
        self._end_unswitched("then memory ran out")
        self.oom_words = explain_oom(self.runner, error)
        free_after_oom(self.runner, error)
        return self.oom_words

"""The state of a Lab: a Run with its panels, messages, actions and frames. This module creates no widgets."""

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
from .frames import Frame, FrameWriter, Pace, PanelDrawings, RequestError, changed_lines, live_pace, shorten_message
from .live import lab_rows

UPDATE_MS = 1000 / 60  # display time of an update at the default speed
STATEMENT_MS = 350.0  # display time of a statement that is run by itself
REQUEST_SECONDS = 1.0  # maximum training time for one request from the browser, during which cells have to wait
INTERRUPTED = "Interrupted. Press Play to continue."
_OWN_LOOP = "This is your own loop now. Turning a switch brings the recipe's loop back."
_LONG_UPDATE = "An update has been running for over a second"
_NOTE_MS = 6000.0  # display time of a note during playback
_UPDATES_PER_REPORT = 20  # number of updates between two progress reports, of which only the last may measure memory


class LabModel:
    """A run with its switches, speed, panels and messages; ``frame`` returns their changes for the browser.

    ``controls`` and ``panels`` name the controls and panels to show; if ``panels`` is None, the task's default
    panels are shown. ``fail`` shows an error to the learner.
    """

    def __init__(self, runner: Run, controls: Sequence[str], panels: Sequence[PanelName] | None, speed: str) -> None:
        self.controls, self.chosen_panels = controls, panels
        self.speed = speed  # a key of SPEEDS: the speed of playback until the learner chooses another
        self.pace_at: Callable[..., Pace] = live_pace  # returns the pauses between drawings of costly panels
        self.plays_first = False  # whether the first browser that shows the lab plays it at once
        self.playing = False  # True from the first request for frames to the end of playback
        self.interrupted = False  # True after an interrupt of the kernel, until playback has ended
        self.stopped = False  # True after playback has ended by itself, until the learner's next request
        self.play_id: tuple[Any, Any] = (None, None)  # ``client`` and ``play`` of the newest request for frames
        self.stopped_play_id: tuple[Any, Any] = (None, None)  # value of ``play_id`` when playback last ended by itself
        self.draft, self.wrong = "", 0  # the learner's loop that was refused or failed, and the line with the error
        self._now = 0.0  # playback time: the sum of the durations of the frames so far, in ms
        self.note, self._note, self._note_ends = "", "", 0.0  # current note; shown note, and its end in ms of playback
        self.oom_message = ""  # the explanation of the newest out-of-memory error
        self.unswitched: Counterfactual | None = None  # a copy of the run that continues without the newest switch
        self.unswitched_share = 0.1  # share of a processor core that ``unswitched`` may use
        self.writer = FrameWriter()
        self._reset_point: tuple[Sequence[tuple[int, Recipe | str]], Sequence[float] | None, int, int] | None = None
        self._memory_due = False  # whether the loop has changed since memory was last measured
        self._texts: dict[str, str] = {}  # status line, warning and note of the newest frame
        self._gradient: Drawing | None = None  # the gradient panel's Drawing to which ``_texts`` belongs
        self.show(runner)

    def show(self, runner: Run, note: str = "", *, keep_view: bool = False) -> None:
        """Show ``runner``, a new or reset Run, with ``note``; ``keep_view`` keeps a landscape's visible range."""
        self.runner = runner
        self._source, self._changed = runner.source, list[int]()
        self.wrong, self._doctor = 0, LiveDoctor()
        if not keep_view:
            self.screen = PanelDrawings(RunScenes(runner))
            self.screen.scenes.watch_for(self.panels())
        self._forget_unswitched()
        self.note = note

    def panels(self) -> list[PanelName]:
        """Return the names of the panels to show; a default panel replaces any that the task does not have."""
        names, scaler = self.screen.scenes.names(), PanelName.SCALER
        usual = next(name for name in (PanelName.PICTURE, PanelName.LANDSCAPE, PanelName.LOSS) if name in names)
        third = scaler if scaler in names else usual
        chosen = self.chosen_panels or [PanelName.LOSS, PanelName.GRADIENT, third, PanelName.MEMORY]
        return list(dict.fromkeys(name if name in (*names, scaler) else usual for name in chosen))

    def drawings(self) -> list[Drawing]:
        """Return the current Drawings of all panels, for a still picture."""
        return list(PanelDrawings(self.screen.scenes).draw(self.panels(), 0.0).values())

    def still(self) -> list[Placed]:
        """Return the placed parts of the still picture: any warning, the loop with note and status, and the panels."""
        ran, texts = self.runner.statement, (self.note, status_line(self.runner, whole=False))
        lit = range(ran.line, ran.last_line + 1)
        listing = partial(Listing, self.runner.source, lit=lit, changed=self.changed, sentences=[*filter(None, texts)])
        return lab_rows(self.drawings(), listing, self.warning)

    @property
    def changed(self) -> list[int]:
        """The line numbers, from 1, of the lines of the loop that the newest switch or edit changed."""
        if self.runner.source != self._source:
            self._changed = changed_lines(self._source, self.runner.source) if self._source else []
            self._source = self.runner.source
        return self._changed

    @property
    def warning(self) -> str:
        """The warning about the run, else the doctor's findings on the learner's own loop, or "" if there are none."""
        return warning(self.runner) or (self._doctor.text() if self.runner.loop.is_edited else "")

    def frame(self, *, only_due: bool = False) -> Frame:
        """Return the next frame: a dict with the changed fields. ``only_due`` redraws only the panels that are due."""
        ran, drawings = self.runner.statement, self.screen.draw(self.panels(), self._now, only_due=only_due)
        gradient = drawings.get(PanelName.GRADIENT)
        if not only_due or gradient is None or gradient is not self._gradient:  # texts change only with this panel
            self._gradient = gradient
            if self.note != self._note:
                self._note_ends = self._now + _NOTE_MS
            elif self._now > self._note_ends:
                self.note = ""
            self._note = self.note
            now = unapplied(self.runner)
            note = (self.playing and now) or self.note or now or _OWN_LOOP * self.runner.loop.is_edited
            self._texts = {"state": status_line(self.runner, whole=False), "alarm": self.warning, "note": note}
        frame = self.writer.write(
            drawings,
            updates=self.runner.updates,
            **self._texts,
            lit=[ran.line, ran.last_line],
            changed=self.changed,
            wrong=self.wrong,
            draft=self.draft,
            left_off=self._reset_point[2] if self._reset_point else None,
            **lab_settings(self.runner, self.controls, self.speed),
        )
        return {**frame, "stop": True} if self.stopped else frame

    def run_statements(self, statements: int = 1, every: float = STATEMENT_MS) -> None:
        """Run ``statements`` statements of the loop, each of which takes ``every`` ms of playback."""
        with self._training(statements * every):
            for _ in range(statements):
                self.runner.run_statement()

    def run_statement_for(self, every: float) -> None:
        """Run one statement of the loop during playback, for a frame that is shown for ``every`` ms."""
        self._begin_frame(every, full_speed=False)
        self.run_statements()

    @property
    def at_beat(self) -> bool:
        """Whether the statement that ran last was a call in ``BEATS`` or ended an update."""
        return self.runner.statement.label in BEATS or self.runner.engine.at_boundary

    def run_beat_for(self, every: float) -> None:
        """Run statements until ``at_beat`` is true; all frames of one update together are shown for ``every`` ms."""
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
        """Run ``updates`` updates, or as many as begin within ``seconds``, for a frame that is shown for ``every`` ms.

        After ``window`` backward passes without a step, each further pass counts as an update; the default is
        LONGEST_WINDOW or, in the learner's own loop, the longest window of that loop so far. The run stops after one
        second, and a note reports an unfinished update.
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
        """Train until the run has ``updates`` updates; after every few, call ``report`` with the number of new ones."""
        if self.runner.updates < updates:
            self.note = ""
            self._watch_memory_if_due()
        while self.runner.updates < updates and not self.runner.engine.done:
            count = min(updates - self.runner.updates, _UPDATES_PER_REPORT)
            with self._training(count * UPDATE_MS):
                count = self.runner.advance(updates=count)
            main_thread.serve()
            report(count)

    def run_to_line(self, line: int) -> None:
        """Run until the statement at ``line`` has run, at most two updates. Raises RequestError if none is there."""
        runner = self.runner
        spans = ((s.line, s.last_line) for s in runner.loop.program.statements)
        wanted = min((span for span in spans if span[0] <= line <= span[1]), default=None)
        if wanted is None:
            raise RequestError(f"Line {line} is not a statement of the loop.")
        with self._training(STATEMENT_MS):
            last, runner.engine.deadline = runner.updates + 2, time.perf_counter() + REQUEST_SECONDS
            while True:
                runner.run_statement()
                if (runner.statement.line, runner.statement.last_line) == wanted:
                    return
                if runner.engine.done or runner.updates >= last or time.perf_counter() > runner.engine.deadline:
                    break
            when = "in two updates" if runner.updates >= last else "yet"
            self.note = f"The loop has not reached line {line} {when}. Set-up runs only once."

    @contextmanager
    def _training(self, every: float) -> Iterator[None]:
        """Hold the locks while the run trains for ``every`` ms of playback; then let ``unswitched`` catch up."""
        with main_thread.hold(), lock:
            # The doctor checks only the learner's own loop; for a recipe's loop, ``warning`` is enough.
            with self._doctor if self.runner.loop.is_edited else nullcontext():
                yield
            if self.unswitched is not None:
                self.unswitched.follow(self.runner.updates, self.unswitched_share * every)
            if not self.draft:
                self.wrong = 0

    def _begin_frame(self, every: float, *, full_speed: bool) -> None:
        self._now += every
        self.screen.pace = self.pace_at(every, full_speed=full_speed)
        self._watch_memory_if_due()

    def _watch_memory_if_due(self) -> None:
        """Let the run measure the memory of its next update if the memory panel is shown and due for a new drawing."""
        if not (self.runner.engine.at_boundary or self.runner.engine.at_batch):
            return
        if self._memory_due:  # a switch or an edit makes the panel due only now, when an update can show the effect
            self._memory_due = False
            self.screen.draw_next(PanelName.MEMORY)
        is_due = not self.playing or self.screen.due(PanelName.MEMORY, self._now)
        self.runner.watch_memory = PanelName.MEMORY in self.panels() and is_due

    def begin_again(self, weights: Sequence[float] | None = None) -> None:
        """Begin again with initial ``weights``; None keeps the previous ones. Raises ValueError for invalid weights."""
        self.runner.reset(self.runner.start_weights if weights is None else weights)
        self.show(self.runner)

    def drag_weights(self, weights: Sequence[float]) -> None:
        """Begin again from ``weights``, also at later resets; the landscape panel keeps its visible range."""
        self._reset_point = None
        self.runner.reset(weights)
        self.show(self.runner, "Restarted from the weights that you set.", keep_view=True)

    def set_reset_point(self) -> None:
        """Let the Reset button return to the current state, or to the start of the run if no statement has run."""
        runner, statements = self.runner, self.runner.engine.statements_since_update
        point = tuple(runner.loops), runner.start_weights, runner.updates, statements
        self._reset_point = point if runner.updates or statements else None

    def go_back(self) -> None:
        """Repeat the run up to the state that the last cell reached, or begin again if no cell has advanced the lab."""
        if self._reset_point is None:
            self.begin_again()
            return
        loops, weights, updates, statements = self._reset_point
        self.runner.reset(weights, loops[0][1])
        self.runner.watch_memory = False  # as in a new run
        self.show(self.runner)
        for update, loop in loops[1:]:  # the run is repeated because a learner's loop may have state besides tensors
            self.advance_to(update)
            self._change_loop(loop)
        self.advance_to(updates)
        for _ in range(statements):
            self.runner.run_statement()
        self.note = f"Back at update {updates:,}, where the cell left off."

    def new_task(self, name: object) -> None:
        """Start a new run of the task ``name`` with its default ``lr``. Raises RequestError for an unknown task."""
        try:
            task = tasks.get(one_of("task", name, tasks.names(), kind=ValueError))
        except ValueError as error:
            raise RequestError(str(error)) from error
        runner = Run(task, self.runner.recipe.replace(lr=task.lr))
        self.runner.close()
        self._reset_point = None
        self.show(runner, f"A new run, with lr {task.lr:g} for this task.")

    def switch(self, recipe: Recipe) -> None:
        """Switch to ``recipe`` after the current update. Raises LoopError if this update cannot be completed."""
        runner, before = self.runner, self.runner.updates
        self._change_loop(recipe)
        note = f"Update {runner.updates:,} was completed first. " if runner.updates > before else ""
        self.wrong = 0
        self._memory_due = True  # the next update shows the switch's effect on memory
        if runner.restarted_optimizers:
            note += "The optimizer is new: its state starts empty, weights and .grad stay."
        self.note = note.strip()

    def edit(self, text: str) -> None:
        """Replace the loop with ``text`` after the current update. Raises LoopError, with the line, for a mistake."""
        self._change_loop(text)
        self._doctor = LiveDoctor()  # drops the findings about the previous loop
        self._memory_due = True
        self.note = ""

    def _change_loop(self, loop: Recipe | str) -> None:
        """Switch to ``loop``; if ``_shows_unswitched()``, a copy of the run continues with the previous recipe."""
        runner, copy = self.runner, None
        if isinstance(loop, str):
            runner.edit(loop)
        elif loop == runner.recipe:
            runner.switch(loop)
            return
        else:
            runner.complete_update()
            if runner.watch_gradients:
                self.screen.scenes.gradient()  # stores the panel's scale, in case the learner returns to this loop
            if not runner.loop.is_edited and self._shows_unswitched():
                copy = self.unswitched
                if copy is None or copy.begun != runner.updates:  # two switches at one update count as one
                    copy = None
                    with suppress(Exception):  # memory may run out, or it may be impossible to copy the learner's model
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

    def _shows_unswitched(self) -> bool:
        """Return whether a loss panel and a switch are shown, but no GPU memory, where ``unswitched`` would count."""
        panels = self.panels()
        loss = PanelName.LOSS in panels or PanelName.HELD_OUT in panels
        counted = PanelName.MEMORY in panels and self.runner.task.device.startswith("cuda")
        return loss and not counted and not {*SWITCHES, PRESSED_LINE}.isdisjoint(self.controls)

    def _end_unswitched(self, why: str) -> None:
        if self.unswitched is not None:
            self.unswitched.end(why)

    def _forget_unswitched(self) -> None:
        self._end_unswitched("no longer shown")
        self.unswitched = self.screen.scenes.unswitched = None

    def stop(self, note: str) -> None:
        """End playback, and show ``note``, which gives the reason."""
        self.playing = self.interrupted = False
        self.stopped, self.stopped_play_id = True, self.play_id
        self.note = note

    def stop_if_done(self) -> None:
        """End playback if the loop has ended."""
        if self.runner.engine.done:
            self.stop("The loop has ended. Reset starts it again.")

    def fail(self, error: Exception | KeyboardInterrupt) -> None:
        """Show ``error`` as a note, and end playback unless it is a RequestError. A failed loop stays in the editor."""
        if isinstance(error, RequestError):
            self.note = shorten_message(str(error))
        elif isinstance(error, KeyboardInterrupt):
            main_thread.interrupted = True
            self.stop(INTERRUPTED)
            if self.runner.source != self._source:  # the new loop completed no update, so the old loop is back
                self.draft = self._source
        else:
            self.wrong = error.line if isinstance(error, LoopError) else 0
            message = self.clean_up(error)
            if not message and isinstance(error, LoopError):
                message = f"Your loop stopped at {error}"
                self.draft = error.text if error.text and error.text != self.runner.source else self.draft
            self.stop(message or f"{type(error).__name__}: {error}")

    def clean_up(self, error: Exception) -> str:
        """If ``error`` means that memory ran out, free memory and return an explanation; otherwise return ""."""
        if find_oom(error) is None:
            return ""
        self._end_unswitched("then memory ran out")
        self.oom_message = explain_oom(self.runner, error)
        free_after_oom(self.runner, error)
        return self.oom_message

"""The Lab: a loop that is run, switched and drawn live, by calls of a notebook and requests of a browser."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from .. import tasks
from .._checks import did_you_mean, on_off, whole_number
from .._process import lock, progress_bar
from ..drawing import Placed
from ..front import on_interrupt
from ..loop import LONGEST_WINDOW, SWITCHES, LoopError, Recipe, Run
from ..scenes import BEATS, PanelName, RunScenes, status_line
from .controls import CONTROLS, SPEEDS, USUAL_SPEED
from .frames import Frame, Reply, Request, RequestError, reply_to, shorten_message
from .lab_model import INTERRUPTED, REQUEST_SECONDS, UPDATE_MS, LabModel
from .live import Live, Packed
from .recording import MOST_UPDATES, Recording, record_lab

_SLICE_SECONDS = 0.04  # of training between two frames, and of work before a reply, at most
_MAX_FRAMES, _MAX_SLICES = 20, 2  # frames in one reply, and slices in one at full speed
_MAX_BEATS = 40  # in one reply; beats end with an update
_MAX_UPDATES_PER_FRAME = 1000
_MAX_FRAME_MS = 60_000.0  # for which a frame is shown


class Lab(Live):
    """An interactive training loop: switches, the loop's text, and pictures of its effects.

    Args:
        task: A Task or the name of one; None is digits.
        recipe: A Recipe; None is the default at the task's ``lr``.
        controls, panels: Lists of the names to show; None is all controls, and the panels that suit the task.
        speed: The one at which Play begins, such as "10 updates/s".
        play: Whether it plays when a browser first shows it, unless the reader prefers less motion.

    Raises:
        TypeError, ValueError: An argument is invalid; the message names what is allowed.
    """

    _screen = "lab"

    def __init__(
        self,
        task: Any = None,
        recipe: Recipe | None = None,
        controls: Sequence[str] | None = None,
        panels: Sequence[str] | None = None,
        speed: str = USUAL_SPEED,
        play: bool = False,
    ) -> None:
        control_names = CONTROLS if controls is None else _names("controls", controls, CONTROLS)
        panel_names = None if panels is None else [*map(PanelName, _names("panels", panels, tuple(PanelName)))]
        runner = Run(tasks.resolve("digits" if task is None else task, "Lab"), recipe)
        can = [*RunScenes(runner).names(), PanelName.SCALER]
        for name in [name for name in panel_names or () if name not in can]:
            allowed = f"must be of {', '.join(can)}, got {str(name)!r}"
            raise ValueError(f"Lab: panels of the task {runner.task.name!r} {allowed}")
        if not isinstance(speed, str) or speed not in SPEEDS:
            raise ValueError(f"Lab: speed must be one of {', '.join(SPEEDS)}, got {speed!r}")
        self.model = LabModel(runner, control_names, panel_names, speed)
        """The run with its panels, messages and actions."""
        self.model.plays_first = on_off("Lab: play", play)
        self._writer = self.model.writer

    @property
    def runner(self) -> Run:
        """The current Run; choosing another task makes a new one."""
        return self.model.runner

    @property
    def text(self) -> str:
        """The state as text: one line, and more when something is wrong."""
        with lock:
            model = self.model
            oom_message = model.oom_message if model.note == model.oom_message else ""  # or a newer note is shown
            lines = (f"{self.runner.task.name}: {status_line(self.runner)}", self.warning, oom_message)
        return "\n".join(line for line in lines if line)

    @property
    def warning(self) -> str:
        """The text of the warning chip, "" when nothing is wrong."""
        with lock:
            return self.model.warning

    def run(self, updates: int = 1) -> Lab:
        """Run this number of updates without a browser; a bar shows the progress when it takes over a second.

        Where memory runs out it stops, and the note under the pictures says why.
        """
        updates = whole_number("Lab.run: updates", updates, 0, kind=ValueError)
        try:
            with progress_bar(updates, "updates") as bar:
                self.model.advance_to(self.runner.updates + updates, bar.update)
        except LoopError as error:
            if not (message := self.model.clean_up(error)):
                raise
            self.model.stop(message)
        finally:
            self._show()
        return self

    def run_statements(self, statements: int = 1) -> Lab:
        """Run one statement, or this number of them."""
        statements = whole_number("Lab.run_statements: statements", statements, 0, kind=ValueError)
        try:
            self.model.run_statements(statements, UPDATE_MS)
        finally:
            self._show()
        return self

    def step(self, statements: int = 1) -> Lab:
        """Run statements: the name of ``run_statements`` until version 0.2."""
        warnings.warn("Lab.step is now Lab.run_statements", DeprecationWarning, stacklevel=2)
        return self.run_statements(statements)

    def switch(self, **changes: Any) -> Lab:
        """Turn switches as a learner would: ``lab.switch(zero_grad=False)``; a bad value is a ValueError."""
        with lock:
            self.model.switch(self.runner.recipe.replace(**changes))
            self._show()
        return self

    def edit(self, text: str) -> Lab:
        """Run another loop from the next update on; a LoopError names the line of a mistake."""
        with lock:
            self.model.edit(text)
            self._show()
        return self

    def reset(self, weights: Sequence[float] | None = None) -> Lab:
        """Begin again with the same task, loop and seed; ``weights`` are start values in place of the task's."""
        with lock:
            self.model.begin_again(weights)
            self._show()
        return self

    def record(
        self,
        updates: int = 150,
        switches: Sequence[str] | Mapping[str, Any] = (),
        marks: Sequence[int] = (),
        turns: int = 2,
        opens: int | None = None,
    ) -> Recording:
        """Run this lab anew from its start, as a recording that plays on a page without a kernel.

        Args:
            updates: Number of updates in all, with the same changes of the loop.
            switches: Names of switches to turn in the page, for those that are on or off, or names with values.
            marks: Updates at which they can be turned; every such run is computed now.
            turns: Maximum number of turns one after the other, 1 to 4.
            opens: The update at which the page opens; None is the first of the marks, or the end without any.

        Returns:
            The recording; its ``save("x.html")`` writes the page.

        Raises:
            TypeError, ValueError: An argument is invalid; the message names what is allowed.
        """
        with lock:
            return record_lab(self.model, self.text, updates, switches, marks, turns, opens)

    # Views -----------------------------------------------------------------------------------------------------------

    def handle(self, message: Mapping[str, Any]) -> Reply:
        """Reply to a message of the browser; an interrupt of the kernel ends its work, and the playing."""
        on_interrupt(self._interrupt, enabled=True)
        with lock:
            reply = reply_to(message, self.model, partial(_do, self.model))
        on_interrupt(self._interrupt, enabled=self.model.playing)
        return reply

    def frame(self) -> Frame:
        """Return the changes since the frame before."""
        return self.model.frame()

    def _interrupt(self) -> bool:
        self.model.interrupted = True
        return self.runner.engine.end_soon()

    def _show(self) -> None:
        """Send the browser a frame after a cell has driven the lab; Reset comes back to here."""
        with lock:
            self.model.set_reset_point()
            super()._show()

    def _picture(self) -> list[Placed]:
        return self.model.still()

    def __repr__(self) -> str:
        return f"{self.text}\n\n{self.runner.source}"

    def packed(self) -> Packed:
        """Return a replay of the run so far; ``record`` has options: its length, and switches that can be turned."""
        return self.record(min(max(self.runner.updates, 1), MOST_UPDATES)).packed()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        with lock:
            if self._front is None:
                self.model.set_reset_point()
            else:
                self.model.plays_first = False
            self.model.playing = False
            return super()._repr_mimebundle_(include, exclude)


def _names(field: str, names: Any, allowed: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise TypeError(f"Lab: {field} must be a list of names out of {', '.join(allowed)}, got {names!r}")
    for name in names:
        if name not in allowed:
            near = did_you_mean(name, allowed)
            raise ValueError(f"Lab: {field} must be names out of {', '.join(allowed)}, got {name!r}{near}")
    if field == "panels" and not names:
        raise ValueError(f"Lab: panels must be one or more names out of {', '.join(allowed)}, got {names!r}")
    return tuple(dict.fromkeys(names))


# Requests of a browser ------------------------------------------------------------------------------------------------


def _hello(model: LabModel, request: Request) -> list[Frame]:
    """Return a whole frame, which for the first browser says whether the lab plays on its own."""
    model.writer.start_over()
    plays, model.plays_first = model.plays_first, False
    return [{**model.frame(), "play": True} if plays else model.frame()]


def _play(model: LabModel, request: Request) -> Iterator[Frame]:
    count = max(1, min(request.whole("count"), _MAX_FRAMES))
    every = min(max(request.number("every"), 0.0), _MAX_FRAME_MS)
    at_full_speed = "seconds" in request.fields
    if at_full_speed:
        count = min(count, _MAX_SLICES)
        seconds = min(max(request.number("seconds"), 0.0), _SLICE_SECONDS)
        advance = partial(model.advance_for, every, seconds=seconds)
    elif "updates" in request.fields:
        updates = max(1, min(request.whole("updates"), _MAX_UPDATES_PER_FRAME))
        advance = partial(model.advance_for, every, updates=updates)
    else:
        advance = partial(model.run_statement_for, every)
    if in_beats := request.get("beats") is True:
        advance = partial(model.run_beat_for, every)
    play_id = request.get("client"), request.get("play")
    if play_id[1] is not None and play_id == model.stopped_play_id:  # the browser did not know yet that it had ended
        model.stopped = not model.playing  # repeated until another playing: a reply that said so may be lost
        yield model.frame(only_due=True)
        return
    if play_id != model.play_id and not model.interrupted:
        model.note = ""  # the note is about the time before
    model.play_id, model.playing, model.stopped = play_id, True, False
    end = time.perf_counter() + _SLICE_SECONDS
    beats: list[Frame] = []
    for _ in range(_MAX_BEATS if in_beats else count):
        if model.interrupted:
            model.stop(INTERRUPTED)
        else:
            advance()
            model.stop_if_done()
        frame = model.frame(only_due=not model.stopped)
        yield frame
        if in_beats:
            beats.append(frame)
            ended = model.stopped or model.runner.engine.at_boundary
            for each in beats:
                each["beats"] = len(beats) if ended else len(BEATS)
            if not ended and time.perf_counter() < end + REQUEST_SECONDS:
                continue
            beats, count = [], count - 1
        if model.stopped or not count or (time.perf_counter() > end and not at_full_speed):
            break


def _turn(model: LabModel, request: Request) -> None:
    """Set a switch to a value as it was chosen or typed, or choose another task."""
    name, value, recipe = request.text("name"), request.get("value"), model.runner.recipe
    model.writer.tell_again(name)  # a field goes back to the current value if its new one is refused
    if name == "task":
        model.new_task(value)
    elif name not in SWITCHES:
        raise RequestError(f"a switch must be one of {', '.join(SWITCHES)}, got {name!r}")
    else:
        try:
            recipe = recipe.replace(**{name: SWITCHES[name].read(name, value)})
        except ValueError as error:
            stays = SWITCHES[name].text(getattr(recipe, name))
            raise RequestError(f"{shorten_message(str(error))}. It stays at {stays}.") from error
        model.switch(recipe)


def _edit(model: LabModel, request: Request) -> None:
    text = request.text("text")
    model.writer.tell_again("draft", "wrong")
    model.draft, model.wrong = text, 0
    model.edit(text)
    model.draft = ""


def _drag(model: LabModel, request: Request) -> None:
    name, weights = request.text("name"), (request.number("x"), request.number("y"))
    if name != "weights" or not model.runner.record.is_two_weights:
        raise RequestError(f"what can be dragged are the weights of a model of two, got {name!r}")
    model.drag_weights(weights)


def _press(model: LabModel, request: Request) -> None:
    what = request.text("what")
    kind, _, batch = what.partition(" ")
    if kind != "batch" or not batch.isascii() or not batch.isdigit():
        raise RequestError(f"what can be pressed is a batch, got {what!r}")
    model.note = model.screen.scenes.about_batch(int(batch))


_Act = Callable[[LabModel, Request], Iterable[Frame] | None]
_REQUESTS: Mapping[str, tuple[_Act, str]] = {
    "hello": (_hello, ""),
    "frames": (_play, ""),
    "pause": (lambda model, request: None, "ends"),
    "statement": (lambda model, request: model.run_statements(), "ends"),
    "update": (lambda model, request: model.advance_for(0.0, window=LONGEST_WINDOW), "ends"),
    "reset": (lambda model, request: model.go_back(), "ends"),
    "restart": (lambda model, request: model.begin_again(), "ends"),
    "to_line": (lambda model, request: model.run_to_line(request.whole("line")), "ends"),
    "drag": (_drag, "ends"),
    "turn": (_turn, "goes on"),
    "edit": (_edit, "goes on"),
    "press": (_press, "goes on"),
}
"""The answers to a browser's requests (``front/README.md``), and whether a playing ends or goes on."""


def _do(model: LabModel, request: Request) -> Iterable[Frame] | None:
    act, playing = _REQUESTS[request.kind(_REQUESTS)]
    if playing:
        model.stopped = False  # the end of an earlier playing has been reported
    if playing == "ends":
        model.playing = model.interrupted = False
        if act is not _REQUESTS["pause"][0]:
            model.note = ""
    frames = act(model, request)
    if playing == "ends":
        model.stop_if_done()
        if model.interrupted:
            model.stop(INTERRUPTED)
    return frames

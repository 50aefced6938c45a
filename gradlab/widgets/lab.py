"""The Lab: a training loop with live pictures, controlled by calls in a notebook and by requests from a browser."""

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

_SLICE_SECONDS = 0.04  # at full speed, maximum training time for a frame; otherwise, time after which a reply ends
_MAX_FRAMES, _MAX_SLICES = 20, 2  # maximum number of frames in a reply: in general, and at full speed
_MAX_BEATS = 40  # maximum number of frames in a reply with a frame for each call in ``BEATS``
_MAX_UPDATES_PER_FRAME = 1000
_MAX_FRAME_MS = 60_000.0  # maximum time for which a frame is shown


class Lab(Live):
    """An interactive training loop: its code, switches that change the code, and pictures of what the changes do.

    Args:
        task: A Task or the name of a task; None for "digits".
        recipe: A Recipe; None for the default recipe with the task's ``lr``.
        controls, panels: Names of controls and panels to show; None: all controls, and the task's default panels.
        speed: The speed of playback until the learner chooses another, such as "10 updates/s".
        play: Whether playback starts when a browser first shows the lab, unless the reader prefers reduced motion.

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
            allowed = f"must be among {', '.join(can)}, got {str(name)!r}"
            raise ValueError(f"Lab: panels of the task {runner.task.name!r} {allowed}")
        if not isinstance(speed, str) or speed not in SPEEDS:
            raise ValueError(f"Lab: speed must be one of {', '.join(SPEEDS)}, got {speed!r}")
        self.model = LabModel(runner, control_names, panel_names, speed)
        self.model.plays_first = on_off("Lab: play", play)
        self._writer = self.model.writer

    @property
    def runner(self) -> Run:
        """The current Run, which is replaced by a new Run when another task is chosen."""
        return self.model.runner

    @property
    def text(self) -> str:
        """The status of the run in one line, followed by any warning and, if memory ran out, by an explanation."""
        with lock:
            model = self.model
            oom_message = model.oom_message if model.note == model.oom_message else ""  # a newer note replaces it
            lines = (f"{self.runner.task.name}: {status_line(self.runner)}", self.warning, oom_message)
        return "\n".join(line for line in lines if line)

    @property
    def warning(self) -> str:
        """The warning that the lab shows, or "" if nothing is wrong."""
        with lock:
            return self.model.warning

    def run(self, updates: int = 1) -> Lab:
        """Train for ``updates`` updates and return this Lab; a progress bar appears after one second.

        If memory runs out, training stops, and the lab shows the reason. Other failures of the loop raise LoopError.
        """
        updates = whole_number("Lab.run: updates", updates, 0, kind=ValueError)
        self._keep_frame()  # kept before the run, because requests from the browser are served during the run
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
        """Run ``statements`` statements of the loop and return this Lab. Raises LoopError if one of them fails."""
        statements = whole_number("Lab.run_statements: statements", statements, 0, kind=ValueError)
        try:
            self.model.run_statements(statements, UPDATE_MS)
        finally:
            self._show()
        return self

    def step(self, statements: int = 1) -> Lab:
        """Do the same as ``run_statements``, under a deprecated name."""
        warnings.warn("Lab.step is now Lab.run_statements", DeprecationWarning, stacklevel=2)
        return self.run_statements(statements)

    def switch(self, **changes: Any) -> Lab:
        """Set switches, as in ``lab.switch(zero_grad=False)``. Raises ValueError for an unknown or invalid argument."""
        with lock:
            self.model.switch(self.runner.recipe.replace(**changes))
            self._show()
        return self

    def edit(self, text: str) -> Lab:
        """Replace the loop with ``text`` after the current update. Raises LoopError, with the line, for a mistake."""
        with lock:
            self.model.edit(text)
            self._show()
        return self

    def reset(self, weights: Sequence[float] | None = None) -> Lab:
        """Begin again with the same task, loop and seed. ``weights`` replaces the initial weights; None keeps them."""
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
        """Run this lab again from its start, and return a recording that plays on a page without a kernel.

        Args:
            updates: Total number of updates; switches and edits so far are repeated at the same updates.
            switches: Names of on/off switches that a reader can change, or a mapping from names to lists of values.
            marks: Updates at which these switches can be changed; every resulting run is computed in advance.
            turns: Maximum number of changes in one run, 1 to 4.
            opens: The update at which the page opens; None for the first mark or, if nothing can change, the end.

        Returns:
            The recording; its ``save("x.html")`` writes the page.

        Raises:
            TypeError, ValueError: An argument is invalid; the message names what is allowed.
        """
        with lock:
            return record_lab(self.model, self.text, updates, switches, marks, turns, opens)

    def handle(self, message: Mapping[str, Any]) -> Reply:
        """Return the reply to a message from the browser. If the kernel is interrupted, training and playback end."""
        on_interrupt(self._interrupt, enabled=True)
        with lock:
            reply = reply_to(message, self.model, partial(_do, self.model))
        on_interrupt(self._interrupt, enabled=self.model.playing)
        return reply

    def frame(self) -> Frame:
        """Return the next frame: a dict with the fields that have changed since the previous frame."""
        return self.model.frame()

    def _interrupt(self) -> bool:
        self.model.interrupted = True
        return self.runner.engine.end_soon()

    def _show(self) -> None:
        """Send the browser a frame after a cell has changed the lab, and let the Reset button return to this state."""
        with lock:
            self.model.set_reset_point()
            super()._show()

    def _picture(self) -> list[Placed]:
        return self.model.still()

    def __repr__(self) -> str:
        return f"{self.text}\n\n{self.runner.source}"

    def packed(self) -> Packed:
        """Return a recording of the run so far for a page without a kernel; use ``record`` to add switches."""
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
        raise TypeError(f"Lab: {field} must be a list of names from {', '.join(allowed)}, got {names!r}")
    for name in names:
        if name not in allowed:
            near = did_you_mean(name, allowed)
            raise ValueError(f"Lab: {field} must be among {', '.join(allowed)}, got {name!r}{near}")
    if field == "panels" and not names:
        raise ValueError(f"Lab: panels must be one or more of {', '.join(allowed)}, got {names!r}")
    return tuple(dict.fromkeys(names))


def _hello(model: LabModel, request: Request) -> list[Frame]:
    """Return one whole frame, which has the field ``play`` only the first time, and only if the lab plays by itself."""
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
    if play_id[1] is not None and play_id == model.stopped_play_id:  # the browser had not received ``stop``
        model.stopped = not model.playing  # ``stop`` is repeated until playback restarts, in case a reply was lost
        yield model.frame(only_due=True)
        return
    if play_id != model.play_id and not model.interrupted:
        model.note = ""  # the note is about an earlier state
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
    name, value, recipe = request.text("name"), request.get("value"), model.runner.recipe
    model.writer.tell_again(name)  # if the new value is refused, the control must show the current value again
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
    if name != "weights":
        raise RequestError(f"drag: name must be 'weights', got {name!r}")
    if not model.runner.record.is_two_weights:
        raise RequestError("the weights can be dragged only if the model has exactly two")
    model.drag_weights(weights)


def _press(model: LabModel, request: Request) -> None:
    what = request.text("what")
    kind, _, batch = what.partition(" ")
    if kind != "batch" or not batch.isascii() or not batch.isdigit():
        raise RequestError(f"press: what must name a batch, such as 'batch 38', got {what!r}")
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
"""The function for each kind of request (``front/README.md``), and its effect on playback, or ""."""


def _do(model: LabModel, request: Request) -> Iterable[Frame] | None:
    act, playing = _REQUESTS[request.kind(_REQUESTS)]
    if playing:
        model.stopped = False  # the browser already knows that earlier playback has ended
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

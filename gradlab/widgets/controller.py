"""What a Lab does with what the browser asks: playing, and each thing that a learner does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from .._process import lock
from ..loop import SWITCHES
from .controls import UNSWITCHED
from .lab_model import REQUEST_LIMIT, LabModel
from .requests import Actions, Frame, Reply, Request, RequestError, cut_words, reply_to, try_to

_SLICE = 0.04  # seconds of training between two frames, and of work before a request is replied to, at most
_MOST_FRAMES, _MOST_SLICES = 20, 2  # in one reply: so many frames, and so many slices at full speed
_MOST_BETWEEN = 1000  # updates between two frames
_MOST_EVERY = 60_000.0  # ms that a frame is seen

INTERRUPTED = "Interrupted. Press Play to continue."


class LabController:
    """Takes what the browser asks of a Lab, and replies with frames. It knows no widget."""

    def __init__(self, model: LabModel) -> None:
        self._model = model
        self.interrupted = False
        """Set when the kernel is interrupted between two requests; the next request for frames ends the playing."""
        self._stopped = False  # from the end of a playing that nobody paused to the next thing that is asked
        self._play_id: tuple[Any, Any] = (None, None)  # the client that played last, and how it counts its playing
        self._ended_play: tuple[Any, Any] = (None, None)  # the playing that ended by itself
        ends_playing: Actions = {
            "pause": lambda request: None,
            "statement": lambda request: self.train(model.step),
            "update": lambda request: self.train(lambda: model.advance_for(0.0, limit=REQUEST_LIMIT)),
            "reset": lambda request: self.train(model.go_back),
            "restart": lambda request: self.train(model.begin_again),
            "to_line": lambda request: self.train(partial(model.run_to_line, request.whole("line"))),
            "drag": self._drag,
        }
        plays_on: Actions = {
            "turn": self._turn,
            "edit": lambda request: self.edit(request.text("text")),
            "press": self._press,
        }
        self._actions: Actions = {
            "hello": lambda request: model.writer.start_over(),
            "frames": self._play,
            **{do: partial(self._act, act, ends=True) for do, act in ends_playing.items()},
            **{do: partial(self._act, act, ends=False) for do, act in plays_on.items()},
        }

    def handle(self, message: Mapping[str, Any]) -> Reply:
        """Return the reply to a message of the browser (``front/README.md``); nothing is ever raised."""
        with lock:
            return reply_to(message, self._actions, self._fail, self.frame)

    def attempt(self, action: Callable[[], object]) -> None:
        """Do something for the learner; what goes wrong ends the playing, and is said in words."""
        try_to(action, self._fail)

    def frame(self, *, only_due: bool = False) -> Frame:
        """Return the model's frame, and that the playing has ended if it has."""
        frame = self._model.frame(only_due=only_due)
        return {**frame, "stop": True} if self._stopped else frame

    def stop(self, words: str) -> None:
        """End the playing, and say why."""
        self._model.playing = self.interrupted = False
        self._stopped, self._ended_play = True, self._play_id
        self._model.note = words

    def _act(self, act: Callable[[Request], Iterable[Frame] | None], request: Request, *, ends: bool) -> None:
        self._stopped = False  # that an earlier play ended has been said
        if ends:
            self._model.playing = self.interrupted = False
        act(request)

    def _fail(self, error: Exception | KeyboardInterrupt) -> None:
        """Say in words what went wrong."""
        if isinstance(error, RequestError):
            self._model.note = cut_words(str(error))
        elif isinstance(error, KeyboardInterrupt):
            self.stop(INTERRUPTED)
        else:
            self.stop(self._model.explain(error))

    # Training ---------------------------------------------------------------------------------------------------------

    def train(self, action: Callable[[], object]) -> None:
        """Train; where the loop has come to its end, so has the playing."""
        action()
        if self._model.runner.engine.done:
            self.stop("The loop has come to its end. Reset begins it again.")

    def _play(self, request: Request) -> Iterator[Frame]:
        """Make some frames, as many as a slice of work allows, and at least one."""
        count = max(1, min(request.whole("count"), _MOST_FRAMES))
        every = min(max(request.number("every"), 0.0), _MOST_EVERY)
        at_full_speed = "seconds" in request.fields
        if at_full_speed:
            count = min(count, _MOST_SLICES)
            seconds = min(max(request.number("seconds"), 0.0), _SLICE)
            advance = partial(self._model.advance_for, every, seconds=seconds, limit=REQUEST_LIMIT)
        elif "updates" in request.fields:
            updates = max(1, min(request.whole("updates"), _MOST_BETWEEN))
            advance = partial(self._model.advance_for, every, updates=updates, limit=REQUEST_LIMIT)
        else:
            advance = partial(self._model.step_for, every)
        play_id = request.get("client"), request.get("play")
        if play_id[1] is not None and play_id == self._ended_play:  # the browser did not know yet that it had ended
            self._stopped = False
            yield self.frame(only_due=True)
            return
        if self._model.note == INTERRUPTED and not self.interrupted:
            self._model.note = ""  # it does continue
        self._play_id, self._model.playing, self._stopped = play_id, True, False
        end = time.perf_counter() + _SLICE
        for _ in range(count):
            if self.interrupted:
                self.stop(INTERRUPTED)
            else:
                self.train(advance)
            yield self.frame(only_due=not self._stopped)
            if self._stopped or (time.perf_counter() > end and not at_full_speed):
                break

    # What else the learner does ---------------------------------------------------------------------------------------

    def edit(self, text: str) -> None:
        """Take a text of the learner's own for the loop; one that is not taken stays open."""
        self._model.writer.tell_again("draft", "wrong")
        self._model.draft, self._model.wrong = text, 0
        self._model.edit(text)
        self._model.draft = ""

    def _turn(self, request: Request) -> None:
        """Turn a switch, or choose another task; the value as it was chosen or typed."""
        name, value = request.text("name"), request.get("value")
        model, recipe = self._model, self._model.runner.recipe
        model.writer.tell_again(name)  # a field goes back to what is the case if its value is refused
        if name == UNSWITCHED:
            model.show_unswitched(value is True)
        elif name == "task":
            model.new_task(value)
        elif name not in SWITCHES:
            raise RequestError(f"a switch must be one of {', '.join(SWITCHES)}, got {name!r}")
        else:
            try:
                recipe = recipe.replace(**{name: SWITCHES[name].read(name, value)})
            except ValueError as error:
                stays = SWITCHES[name].text(getattr(recipe, name))
                raise RequestError(f"{cut_words(str(error))}. It stays at {stays}.") from error
            model.switch(recipe)

    def _drag(self, request: Request) -> None:
        """Begin again with the two weights where they were dragged."""
        name, weights = request.text("name"), (request.number("x"), request.number("y"))
        if name != "weights" or not self._model.runner.record.is_two_weights:
            raise RequestError(f"what can be dragged are the weights of a model of two, got {name!r}")
        self._model.drag_weights(weights)

    def _press(self, request: Request) -> None:
        """Say of a batch which one it is, and whether a step has applied it."""
        what = request.text("what")
        kind, _, batch = what.partition(" ")
        if kind != "batch" or not batch.isascii() or not batch.isdigit():
            raise RequestError(f"what can be pressed is a batch, got {what!r}")
        self._model.note = self._model.screen.scenes.about_batch(int(batch))

"""From a request of the browser to the frames that answer it; ``front/README.md`` lists the requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .frames import Frame
from .requests import RequestError, cut_words, panel_size, read_number, read_string, read_whole

if TYPE_CHECKING:
    from .controller import LabController

_SLICE = 0.04  # seconds of training between two frames, and of work before a request is answered, at most
_MOST_FRAMES, _MOST_SLICES = 20, 2  # in one answer: so many frames, and so many slices at full speed
_MOST_BETWEEN = 1000  # updates between two frames
_MOST_EVERY = 60_000.0  # ms that a frame is seen
_PLAYED_ON = ("turn", "size", "zoom", "press", "edit")  # requests after which playing goes on

INTERRUPTED = "Interrupted. Press Play to continue."


def answer_request(lab: LabController, request: Mapping[str, Any]) -> dict[str, Any]:
    """Do what a request asks, and return the answer; what cannot be done is said in words."""
    began = time.perf_counter()
    try:
        frames = _frames(lab, request)
    except RequestError as error:
        lab.say(cut_words(str(error)))
        frames = [lab.frame()]
    work = round((time.perf_counter() - began) * 1000, 1)
    return {"n": request.get("n"), "client": request.get("client"), "work": work, "frames": frames}


def _frames(lab: LabController, request: Mapping[str, Any]) -> list[Frame]:
    do = request.get("do")
    if do == "frames":
        return _play(lab, request)
    if do == "hello":
        lab.tell_all()
        return [lab.frame()]
    actions: dict[str, Callable[[], object]] = {
        "pause": lambda: None,
        "statement": lab.step,
        "update": lab.update,
        "reset": lab.reset,
        "restart": lab.restart,
        "turn": lambda: lab.turn(read_string(request, "name"), request.get("value")),
        "edit": lambda: lab.edit(read_string(request, "text")),
        "to_line": lambda: lab.run_to_line(read_whole(request, "line")),
        "drag": lambda: lab.drag(read_string(request, "name"), read_number(request, "x"), read_number(request, "y")),
        "zoom": lambda: lab.zoom(request.get("low"), request.get("high")),
        "press": lambda: lab.press(read_string(request, "what")),
        "size": lambda: lab.resize(panel_size(request)),
    }
    if not isinstance(do, str) or do not in actions:
        raise RequestError(f"do must be one of hello, frames, {', '.join(actions)}, got {do!r}")
    lab.stopped = False  # that an earlier play ended has been said
    if do not in _PLAYED_ON:
        lab.playing = lab.interrupted = False
    actions[do]()
    return [lab.frame()]


def _play(lab: LabController, request: Mapping[str, Any]) -> list[Frame]:
    """Make some frames, as many as a slice of work allows, and at least one."""
    count = max(1, min(read_whole(request, "count"), _MOST_FRAMES))
    every = min(max(read_number(request, "every"), 0.0), _MOST_EVERY)
    if "seconds" in request:
        count = min(count, _MOST_SLICES)
        some: dict[str, Any] = {"seconds": min(max(read_number(request, "seconds"), 0.0), _SLICE)}
    else:
        updates = read_whole(request, "updates") if "updates" in request else None
        some = {} if updates is None else {"updates": max(1, min(updates, _MOST_BETWEEN))}
    play_id = request.get("client"), request.get("play")
    if play_id[1] is not None and play_id == lab.ended_play:  # asked for before the browser knew that it had ended
        lab.stopped = False
        return [lab.frame(only_due=True)]
    if lab.note == INTERRUPTED and not lab.interrupted:
        lab.say("")  # it does continue
    lab.play_id = play_id
    lab.playing, lab.stopped = True, False
    frames: list[Frame] = []
    end = time.perf_counter() + _SLICE
    while len(frames) < count and not lab.stopped:
        if lab.interrupted:
            lab.stop(INTERRUPTED)
        else:
            lab.advance_for(every, **some) if some else lab.step_for(every)
        frames.append(lab.frame(only_due=not lab.stopped))
        if time.perf_counter() > end and "seconds" not in some:
            break
    return frames

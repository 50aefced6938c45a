"""Recordings for web pages: the frames of a run, and of its variants in which switches are changed at chosen updates.

PyTorch computes all numbers when the recording is made: each variant is a complete run from the start.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._checks import did_you_mean, whole_number
from .._process import main_thread
from ..drawing import Placed
from ..formatting import number_of
from ..loop import SWITCHES, OnOff, Recipe, Run
from .controls import MOST_IN_BEATS, SPEEDS, ZERO_GRAD
from .frames import RECORDED, Frame
from .lab_model import STATEMENT_MS, UPDATE_MS, LabModel
from .live import Packed, checked_path, packed_text

MOST_UPDATES = 1000
_MAX_TURNS = 4
_MAX_TRACKS = 64
_STATEMENTWISE_UPDATES = 4  # number of updates at the start of a track whose statements are recorded one by one

Loops = Sequence[tuple[int, Recipe | str]]
Values = Mapping[str, Sequence[Any]]  # name of a switch -> the values that it can be set to


@dataclass
class Track:
    """A recorded run: the lab's own, or a branch of another run in which ``switch`` becomes ``value`` at ``update``."""

    parent: int | None  # index of the track from which this track branches off, or None for the lab's own run
    update: int
    switch: str = ""
    value: Any = None
    frames: list[Frame] = field(default_factory=list)  # the first frame is whole, and the others contain only changes


@dataclass(frozen=True)
class Recording:
    """The result of ``Lab.record``: the recorded runs, beginning with the lab's own. ``save`` writes them to a page."""

    title: str
    caption: str
    marks: list[int]  # updates at which switches can be changed
    opens: int  # the update at which the page opens
    tracks: list[Track]
    alt: str
    still: list[Placed] = field(repr=False)

    def packed(self) -> Packed:
        """Return the recording packed for a page without a kernel."""
        content = {name: getattr(self, name) for name in ("title", "marks", "opens")}
        content["tracks"] = [vars(track) for track in self.tracks]
        return Packed("replay", self.title, self.caption, self.alt, self.still, packed_text(content))

    def save(self, path: str | Path) -> Path:
        """Write the recording as a page, and return its path. Raises ValueError unless ``path`` ends in ``.html``."""
        target = checked_path("Recording.save", path, (".html",))
        target.write_text(self.packed().page(), encoding="utf-8")
        return target


def record_lab(
    lab: LabModel, alt: str, updates: int, switches: Any, marks: Any, turns: int, opens: int | None
) -> Recording:
    """Run ``lab`` again and return the recording. Arguments are as in ``Lab.record``; ``alt`` is the picture's text."""
    runner, last = lab.runner, _whole("updates", updates, 1, MOST_UPDATES) - 1
    if isinstance(marks, str) or not isinstance(marks, Iterable):
        raise TypeError(f"Lab.record: marks must be a list of whole numbers, 0 to {last}, got {marks!r}")
    every = sorted({_whole("marks", mark, 0, last, "whole numbers") for mark in marks})
    values = _values(switches, runner.recipe)
    tracks = _record_tracks(lab, int(updates), values, every, _whole("turns", turns, 1, _MAX_TURNS))
    caption = "A recording of a real run: press Play, or drag the slider."
    if values and every:
        caption += f" At its ticks (update {', '.join(map(str, every))}) you can turn {' or '.join(values)}."
    title = f"{runner.task.name}, {number_of(int(updates), 'update')}"
    turning = every if values else []
    opening = _whole("opens", (turning[0] if turning else last + 1) if opens is None else opens, 0, last + 1)
    return Recording(title, caption, turning, opening, tracks, alt, lab.still())


def _record_tracks(lab: LabModel, updates: int, values: Values, marks: Sequence[int], turns: int) -> list[Track]:
    """Return the lab's own run, then each run with up to ``turns`` switches changed at ``marks``, after its parent."""
    of_lab: Loops = [(update, loop) for update, loop in lab.runner.loops if update < updates or update == 0]
    runs = [(Track(None, 0), of_lab, 0)]
    for number, (track, loops, turned) in enumerate(runs):  # ``runs`` grows in the loop
        track.frames = _record_frames(lab, loops, track.update, updates, values)
        for mark in marks if turned < turns else ():
            earlier = [(update, loop) for update, loop in loops if update <= mark]
            recipe = earlier[-1][1]
            if (number and mark <= track.update) or not isinstance(recipe, Recipe):
                continue
            for name, options in values.items():
                for value in [option for option in options if option != getattr(recipe, name)]:
                    turn = mark, recipe.replace(**{name: value})
                    runs.append((Track(number, mark, name, value), [*earlier, turn], turned + 1))
        if len(runs) > _MAX_TRACKS:
            allowed = f"at most {_MAX_TRACKS} runs, got {len(runs)} or more"
            raise ValueError(f"Lab.record: marks and switches must make {allowed}")
    return [track for track, *_ in runs]


def _record_frames(lab: LabModel, loops: Loops, start: int, updates: int, values: Values) -> list[Frame]:
    """Run ``updates`` updates with ``loops``, each from its update on; return the frames from update ``start`` on."""
    (_, first), *later = loops
    run = Run(lab.runner.task, first if isinstance(first, Recipe) else None, lab.runner.seed)
    if lab.runner.start_weights is not None or isinstance(first, str):
        run.reset(lab.runner.start_weights, first)
    model = LabModel(run, lab.controls, lab.chosen_panels, lab.speed)
    model.pace_at = lambda *_, **__: RECORDED
    model.playing, model.unswitched_share = True, math.inf  # the copy's training time is not limited in recordings
    frames: list[Frame] = []
    count = 0
    for update, loop in [*later, (updates, None)]:
        while count < update and not run.engine.done:
            if count == start and not frames:
                frames.append(_first_frame(model, values))
            count += 1
            frames += _one_update(model, count - start)
            main_thread.serve()
        if isinstance(loop, Recipe):
            model.switch(loop)
        elif loop is not None:
            try:
                model.edit(loop)
            except Exception as error:
                model.fail(error)
    if count == start and not frames:  # the loop ended at update ``start``
        frames.append(_first_frame(model, values))
    for frame in frames:
        if "code" in frame and ZERO_GRAD not in values:  # the line of zero_grad() cannot be pressed on the page
            frame["code"] = {**frame["code"], "turns": [], "hint": False}
    run.close()
    return frames


def _first_frame(model: LabModel, values: Values) -> Frame:
    whole = model.frame()
    controls = [control for control in whole.get("controls", ()) if control["name"] in values]
    for control in controls:
        if values[control["name"]] and control["kind"] != "tick":  # offers only the recorded values
            texts = [SWITCHES[control["name"]].text(value) for value in values[control["name"]]]
            control.update(kind="choice", options=[[text, text] for text in texts])
    return {**whole, "whole": True, "f": 0, "controls": controls, "off": [], "editable": False}


def _one_update(model: LabModel, number: int) -> list[Frame]:
    """Run an update and return its frames, or [] before the start of the track, where ``number`` is 0 or less."""
    frames, beats = list[Frame](), list[Frame]()
    rate = SPEEDS[model.speed] or math.inf
    goal, by_statement = model.runner.updates + 1, 0 < number <= _STATEMENTWISE_UPDATES
    in_beats = number > 0 and rate <= MOST_IN_BEATS
    every = max(1000 / rate, UPDATE_MS)
    while True:
        try:
            if by_statement:
                model.run_statement_for(STATEMENT_MS)
            elif in_beats:
                model.run_beat_for(every)
            else:
                model.advance_for(every)
            model.stop_if_done()
        except Exception as error:
            model.fail(error)
        if number > 0:
            frames.append(model.frame(only_due=True))
            if in_beats and model.at_beat:
                beats.append(frames[-1])
        elif model.runner.watch_gradients:
            model.screen.scenes.gradient()  # sets the panel's scale as the parent track does
        if not (by_statement or in_beats) or model.stopped or model.runner.updates >= goal:
            break
    for frame in beats:
        frame["beats"] = len(beats)
    if frames:
        frames[-1]["end"] = True
    return frames


def _values(switches: Any, recipe: Recipe) -> Values:
    """Return the values to record for each of ``switches``, the recipe's first; on/off switches need no values."""
    if isinstance(switches, str) or not isinstance(switches, (Sequence, Mapping)):
        raise TypeError(f"Lab.record: switches must be a list of names or a mapping to values, got {switches!r}")
    turnable = {}
    for name in switches:
        if name not in SWITCHES:
            near = did_you_mean(name, SWITCHES)
            raise ValueError(f"Lab.record: switches must be among {', '.join(SWITCHES)}, got {name!r}{near}")
        chosen = switches[name] if isinstance(switches, Mapping) else None
        if chosen is None and not isinstance(SWITCHES[name], OnOff):
            raise ValueError(f'Lab.record: switches must give {name} its values, as {{"{name}": [...]}}')
        values = [True, False] if chosen is None else list(chosen) if isinstance(chosen, (list, tuple)) else [chosen]
        checked = [SWITCHES[name].check(f"Recipe: {name}", value) for value in values]
        turnable[name] = [*dict.fromkeys([getattr(recipe, name), *checked])]
    return turnable


def _whole(name: str, value: Any, low: int, high: int, kind: str = "a whole number") -> int:
    allowed = f"{kind}, {low} to {high:,}"
    return whole_number(f"Lab.record: {name}", value, low, high, allowed=allowed, kind=ValueError)

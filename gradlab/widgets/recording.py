"""Recordings: the frames of a run, and of the runs in which a switch was turned at chosen updates, for a web page.

Every number in a recording was computed by PyTorch when it was recorded: each run is made anew from its start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from .._checks import did_you_mean, whole_number
from .._process import main_thread
from ..loop import SWITCHES, OnOff, Recipe, Run
from ..scenes import PanelName
from .controller import LabController
from .controls import UNSWITCHED, USUAL_SPEED
from .driver import USUAL_EVERY, RunDriver
from .frames import RECORDED
from .live import Still, checked_path
from .packed import Packed, packed_text
from .requests import Frame
from .shown_run import ShownRun

MOST_UPDATES = 1000
_MOST_TURNS = 4
_MOST_TRACKS = 64
_STATEMENTS = 4  # updates at the start of a track that are recorded statement by statement
_READ_ALONG = 350.0  # ms on the clock of the pictures between two statements

Loops = Sequence[tuple[int, Recipe | str]]


@dataclass
class Track:
    """One run: the track that it leaves, and where and how; its frames, the first of them whole."""

    parent: int | None
    at: int
    switch: str = ""
    value: Any = None
    frames: list[Frame] = field(default_factory=list)


@dataclass(frozen=True)
class Recording:
    """What ``Lab.record`` returns: the tracks, the first of them the run itself; ``save`` writes them as a page."""

    title: str
    caption: str
    marks: list[int]
    """Updates at which switches can be turned. The page opens at the first; without any, at the end."""
    tracks: list[Track]
    words: str
    still: Still = field(repr=False)

    def packed(self) -> Packed:
        """Return it packed, for a page without a kernel."""
        told = {"title": self.title, "marks": self.marks, "tracks": [vars(track) for track in self.tracks]}
        return Packed("replay", self.title, self.caption, self.words, self.still, packed_text(told))

    def page(self) -> str:
        """Return one HTML document that plays everywhere, without a kernel and without a network."""
        return self.packed().page()

    def save(self, path: str | Path) -> Path:
        """Write the page as a file; return its path."""
        target = checked_path("Recording.save", path, (".html",))
        target.write_text(self.page(), encoding="utf-8")
        return target


@dataclass(frozen=True)
class Recorder:
    """How the runs of a recording are made: on which task, from which start, and what is shown of them."""

    task: Any
    seed: int
    start_weights: tuple[float, ...] | None
    controls: Sequence[str]
    panels: Sequence[PanelName] | None
    speed: str = USUAL_SPEED

    def record(
        self,
        loops: Loops,
        updates: int,
        values: Mapping[str, Sequence[Any]],
        marks: Sequence[int],
        turns: int,
    ) -> list[Track]:
        """Return the tracks: the run of ``loops``, and every run with up to ``turns`` of switches at marks.

        ``values`` are those to which each switch is turned.
        """
        tracks = [Track(None, 0)]
        makings: list[Loops] = [loops]
        turned = [0]
        at = 0
        while at < len(tracks):
            tracks[at].frames = self._frames(makings[at], tracks[at].at, updates, values)
            for mark in marks if turned[at] < turns else ():
                for name, options in values.items():
                    now = _recipe_at(makings[at], mark)
                    if (at and mark <= tracks[at].at) or not isinstance(now, Recipe):
                        continue
                    for value in [v for v in options if v != getattr(now, name)]:
                        tracks.append(Track(at, mark, name, value))
                        kept = [(when, loop) for when, loop in makings[at] if when <= mark]
                        makings.append([*kept, (mark, now.replace(**{name: value}))])
                        turned.append(turned[at] + 1)
            if len(tracks) > _MOST_TRACKS:
                raise ValueError(
                    f"Lab.record: marks and switches must make at most {_MOST_TRACKS} runs, got {len(tracks)} or more"
                )
            at += 1
        return tracks

    def _frames(self, loops: Loops, begin: int, updates: int, values: Mapping[str, Sequence[Any]]) -> list[Frame]:
        """Make the run of these loops anew; return its frames from the update ``begin`` on."""
        (_, first), *later = loops
        run = Run(self.task, first if isinstance(first, Recipe) else None, self.seed)
        if self.start_weights is not None or isinstance(first, str):
            run.reset(self.start_weights, first)
        shown = ShownRun(run, self.controls, self.panels)
        shown.speed, shown.pace_at, shown.playing = self.speed, lambda *_, **__: RECORDED, True
        shown.unswitched.share = math.inf  # nobody waits for it
        driver = RunDriver(shown)
        controller = LabController(shown, driver)
        waiting = list(later)
        frames: list[Frame] = []
        for update in range(updates + 1):
            if update:
                frames += _one_update(run, driver, controller, update, begin)
            while waiting and waiting[0][0] <= update:
                _, loop = waiting.pop(0)
                controller.attempt(partial(controller.edit, loop)) if isinstance(loop, str) else driver.switch(loop)
            if update == begin:
                turnable = {*values, UNSWITCHED} if values or later else set(values)
                frames = [_for_replay(controller.frame(), turnable)]
            main_thread.serve()
            if run.done:
                break
        run.close()
        return frames


def _one_update(run: Run, driver: RunDriver, controller: LabController, update: int, begin: int) -> list[Frame]:
    """Run an update; return its frames, one a statement for those at the start of a track."""

    def train(action: Callable[[], object]) -> None:
        controller.attempt(partial(controller.train, action))

    if update <= begin or update > begin + _STATEMENTS:
        train(partial(driver.advance_for, USUAL_EVERY))
        return [{**controller.frame(only_due=True), "end": True}] if update > begin else []
    frames = []
    while run.updates < update and not run.done:
        train(partial(driver.step_for, _READ_ALONG))
        frames.append(controller.frame(only_due=True))
    if frames:
        frames[-1]["end"] = True
    return frames


def recording_values(switches: Sequence[str] | Mapping[str, Any], recipe: Recipe) -> dict[str, list[Any]]:
    """Return the values that each switch may be turned to; a switch that is on or off needs no values."""
    if isinstance(switches, str) or not isinstance(switches, (Sequence, Mapping)):
        raise TypeError(f"Lab.record: switches must be names, or names with values, got {switches!r}")
    turnable: dict[str, list[Any]] = {}
    for name in switches:
        if name not in SWITCHES:
            near = did_you_mean(name, SWITCHES)
            raise ValueError(f"Lab.record: switches must be among {', '.join(SWITCHES)}, got {name!r}{near}")
        given = switches[name] if isinstance(switches, Mapping) else None
        if given is None and not isinstance(SWITCHES[name], OnOff):
            raise ValueError(f'Lab.record: switches must give {name} its values, as {{"{name}": [...]}}')
        values = [True, False] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]
        checked = [SWITCHES[name].check(f"Recipe: {name}", value) for value in values]
        turnable[name] = [*dict.fromkeys([getattr(recipe, name), *checked])]
    return turnable


def recording_turns(turns: Any) -> int:
    """Return how many turns one after the other are recorded; ValueError unless it is a small number."""
    return _whole("turns", turns, 1, _MOST_TURNS)


def recording_marks(marks: Any, updates: Any) -> list[int]:
    """Return the marks in order; ValueError unless each is an update of the recording."""
    last = _whole("updates", updates, 1, MOST_UPDATES) - 1
    if isinstance(marks, str) or not isinstance(marks, Iterable):
        raise TypeError(f"Lab.record: marks must be a list of whole numbers, 0 to {last}, got {marks!r}")
    return sorted({_whole("marks", mark, 0, last, "whole numbers") for mark in marks})


def _whole(name: str, value: Any, low: int, high: int, words: str = "a whole number") -> int:
    allowed = f"{words}, {low} to {high:,}"
    return whole_number(f"Lab.record: {name}", value, low, high, allowed=allowed, kind=ValueError)


def recording_caption(values: Mapping[str, Sequence[Any]], marks: Sequence[int]) -> str:
    """Return what a reader of the page is told: what it is, and which switches can be turned where."""
    said = "A recording of a real run, for which no kernel is needed: press Play, or drag the slider."
    if not (values and marks):
        return said
    return f"{said} At its ticks (update {', '.join(map(str, marks))}) you can turn {' or '.join(values)}."


def _recipe_at(loops: Loops, update: int) -> Recipe | str:
    return [loop for when, loop in loops if when <= update][-1]


def _for_replay(frame: Frame, turnable: Collection[str]) -> Frame:
    """Take what only a kernel can do out of a whole frame; ``turnable`` are the controls that the page heeds."""
    controls = [control for control in frame.get("controls", ()) if control["name"] in turnable]
    return {**frame, "whole": True, "f": 0, "controls": controls, "off": [], "editable": False}

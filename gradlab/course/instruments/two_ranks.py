"""Two ranks of a DDP training, run by two real processes, statement by statement, with their all-reduces counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from ...drawing import Dots, Drawing, Line, Mark, Text, applied_words, arrow_ends, draw
from ...formatting import number_of, short
from ...scenes import Arrows
from ...widgets import Control, Instrument, Settings, View
from ..figures.curves import equal_axes
from .two_ranks_numbers import (
    ACCUMULATE,
    FORGETS,
    MOMENTS,
    NO_SYNC,
    SAMPLES_EACH,
    LoopSettings,
    Moment,
    RankMoment,
    Vector,
    clear_failure,
    moments_of,
    run_ranks,
)

_BETWEEN = 900  # milliseconds from one statement to the next while it plays
_NO_SYNC_WORDS = ("no micro-batch", "all but the last", "all but the first (a mistake)")
_WEIGHTS = "weight 1", "weight 2"


class TwoRanks(Instrument):
    """Two processes train one model of two weights with DDP: what is in each ``.grad``, and what is sent."""

    title = "Two ranks"

    def controls(self) -> list[Control]:
        """Return the moment, and what the loop is made of."""
        windows = [(number_of(count, "micro-batch", "es"), count) for count in ACCUMULATE]
        return [
            Control.slider("moment", "statement", 2, range(MOMENTS + 1), plays=_BETWEEN),
            Control.choice("accumulate", "accumulate", 1, windows),
            Control.choice("no_sync", "in no_sync()", NO_SYNC[0], zip(_NO_SYNC_WORDS, NO_SYNC, strict=True)),
            Control.choice("forgets", "forgets zero_grad", FORGETS[0], FORGETS),
        ]

    def render(self, at: Settings) -> View:
        """Show one moment of one loop; the processes run the first time only."""
        settings = LoopSettings(at["accumulate"], at["no_sync"], at["forgets"])
        off = ["no_sync"] if settings.accumulate == 1 else []
        try:
            moments = _moments(settings)
        except RuntimeError as failure:
            words = " ".join(str(failure).split())
            panels = {"ranks": Drawing("two ranks", words=words, notice=words)}
            return View(panels, words, code=settings.source, off=off)
        now = moments[at["moment"]]
        line = settings.line(now.statement)
        return View(
            panels={
                "rank 0": draw_rank_gradient(moments, now, 0),
                "rank 1": draw_rank_gradient(moments, now, 1),
                "weights": draw_weights(moments, now),
            },
            state=_state_text(now, settings),
            note=_note_text(settings),
            code=settings.source,
            off=off,
            lit=(line, line),
        )

    def recorded(self) -> Iterable[Settings]:
        """Return every moment of the loops that differ from the first in one idea; RuntimeError without any."""
        run_ranks()
        loops: list[dict[str, Any]] = [{}]
        loops += [{"forgets": forgets} for forgets in FORGETS[1:]]
        loops += [{"accumulate": 3, "no_sync": no_sync} for no_sync in NO_SYNC]
        return [{**loop, "moment": moment} for loop in loops for moment in range(MOMENTS + 1)]


def two_ranks(**start: Any) -> TwoRanks:
    """Return two ranks; ``moment``, ``accumulate``, ``no_sync`` and ``forgets`` set where they start."""
    instrument = TwoRanks(**start)
    if clear_failure():
        print("Two processes now run each of the loops once: a few seconds.", flush=True)
    return instrument


@cache
def _moments(settings: LoopSettings) -> tuple[Moment, ...]:
    same = LoopSettings(1, "off", settings.forgets)  # no_sync has no effect without a window
    return tuple(moments_of(settings, run_ranks()[same if settings.accumulate == 1 else settings]))


# Words ----------------------------------------------------------------------------------------------------------------


def _state_text(moment: Moment, settings: LoopSettings) -> str:
    if moment.statement == "start":
        return "Both ranks start with the same weights, and with no .grad."
    where = f"Update {moment.update} of {settings.updates}"
    zero, one = (vector_text(rank.grad) for rank in moment.ranks)
    grads = f".grad is {zero} in rank 0 and {one} in rank 1"
    if moment.statement == "zero_grad":
        return f"{where}, zero_grad: {_cleared_text(moment, settings, grads)}"
    if moment.statement == "step":
        count = f"{number_of(len(moment.messages), 'all-reduce')}, {sum(moment.messages)} bytes from each rank so far."
        return f"{where}, step: {_moved_text(moment)} {count}"
    of = f" of micro-batch {moment.micro}" if settings.accumulate > 1 else ""
    if moment.statement == "backward":
        return f"{where}, backward{of}: before any message, {grads}."
    if moment.quiet:
        within = f"micro-batch {moment.micro} is inside no_sync()"
        return f"{where}, {within}: nothing is sent, {grads}.{_beside_one(moment, settings)}"
    sent = f"each rank hands in {moment.sent} bytes, and both get the mean: .grad is {zero}."
    return f"{where}, all-reduce{of}: {sent}{_beside_one(moment, settings)}"


def _note_text(settings: LoopSettings) -> str:
    if settings.accumulate > 1 and settings.no_sync == "all but the first":
        return (
            "Only the first micro-batch is averaged. What the others add stays in its own rank, so the weights drift "
            "apart, and nothing raises an error."
        )
    notes = []
    if settings.forgets != "none":
        part, beta = ("all", "1") if settings.forgets == "both" else ("half", "0.5")
        notes.append(
            "Both ranks step with the same mean, so their weights stay equal, and comparing them finds nothing. "
            f"The mean still holds {part} of the old one: this is momentum {beta}."
        )
    if settings.accumulate > 1 and settings.no_sync == "off":
        notes.append("Every backward() ends in an all-reduce; only the last one before step() is needed.")
    elif settings.accumulate > 1:
        notes.append(f"One all-reduce for each update instead of {settings.accumulate}, and the same .grad at step().")
    return " ".join(notes)


def _cleared_text(moment: Moment, settings: LoopSettings, grads: str) -> str:
    if settings.forgets == "none":
        return "both ranks clear .grad."
    who = "rank 0 clears .grad, rank 1 forgets" if settings.forgets == "rank 1" else "both ranks forget it"
    return f"{who}: {grads}." if moment.ranks[1].grad else f"{who}, and there is nothing to clear yet."


def _moved_text(moment: Moment) -> str:
    zero, one = (vector_text(rank.path[-1]) for rank in moment.ranks)
    if moment.apart == 0:
        return f"the weights of both ranks are {zero}."
    return f"rank 0 is at {zero}, rank 1 at {one}: {short(moment.apart)} apart."


def _beside_one(moment: Moment, settings: LoopSettings) -> str:
    """Compare with one process, once the window is complete."""
    if moment.micro < settings.accumulate:
        return ""
    who = f" One process with all {SAMPLES_EACH * settings.accumulate} samples would have"
    if moment.off < 1e-3:
        return f"{who} the same."
    of = "rank 0" if moment.apart or moment.quiet else ".grad"
    return f"{who} {vector_text(moment.whole)}: {of} is off by {moment.off:.0%}."


def vector_text(vector: Vector | None) -> str:
    """Write two numbers, or None: ``(−3.79, −2.39)``."""
    return "None" if vector is None else f"({short(vector[0])}, {short(vector[1])})"


# Pictures -------------------------------------------------------------------------------------------------------------


def _scene(rank: RankMoment) -> Arrows:
    return Arrows(rank.arrows, rank.grad or (0.0, 0.0))


def draw_rank_gradient(moments: Sequence[Moment], now: Moment, number: int) -> Drawing:
    """Draw the contributions to one rank's ``.grad`` head to tail, and their sum."""
    rank = now.ranks[number]
    grad, drawing = vector_text(rank.grad), draw(_scene(rank))
    every = [arrow_ends(_scene(each)) for moment in moments for each in moment.ranks]
    parts = "; ".join(
        f"{arrow.names[0]} {vector_text((arrow.x, arrow.y))}, {applied_words(*arrow.applied)}" for arrow in rank.arrows
    )
    return replace(
        drawing,
        title=f".grad of rank {number}",
        marks=[Dots("origin", (0.0, 0.0), "plus", 9.0, stroke="grey", width=1.5), *drawing.marks],
        axes=(equal_axes(every, _WEIGHTS),),  # the same at every moment
        words=f"Rank {number}: .grad {'is None' if rank.grad is None else f'holds {grad}: {parts}'}.",
        corner=(grad,),
    )


def draw_weights(moments: Sequence[Moment], now: Moment) -> Drawing:
    """Draw the way of both ranks' weights, and of one process with all samples."""
    every = [np.array(path) for path in (*(rank.path for rank in moments[-1].ranks), moments[-1].alone)]
    ways = [
        ("one process", now.alone, "grey", "dashed", "ring", 12.0),
        ("rank 0", now.ranks[0].path, "weights", "", "triangle", 9.0),
        ("rank 1", now.ranks[1].path, "weights", "dotted", "down", 9.0),
    ]
    marks: list[Mark] = []
    for name, path, role, dash, shape, size in ways:
        points, words = np.ravel(path), f"{name}: {vector_text(path[-1])} after {len(path) - 1} updates"
        marks.append(Line(f"{name} way", points, role, 2.0, dash, words))
        marks.append(Dots(name, points, shape, size, stroke=role, width=1.5, words=words))
        marks.append(Text(f"{name} name", (name,), *path[-1], role=f"{role}-text", backed=True))
    return Drawing(
        "weights",
        marks,
        (equal_axes(every, _WEIGHTS),),
        f"{_moved_text(now).capitalize()} One process is at {vector_text(now.alone[-1])}.",
        corner=("the ranks are equal" if now.apart == 0 else f"the ranks are {short(now.apart)} apart",),
    )

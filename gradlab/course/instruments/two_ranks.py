"""The two-ranks instrument: DDP in two real processes, and the .grad of both ranks before and after an all-reduce."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from ...drawing import Dots, Drawing, Line, Mark, Text, arrow_ends, arrow_marks, batch_key, batch_style
from ...formatting import number_of, short
from ...scenes import Arrows
from ...widgets import Control, Instrument, Settings, View
from ..figures.curves import equal_axes
from .two_ranks_numbers import (
    ACCUMULATE,
    FORGETS,
    LOOP_UPDATES,
    NO_SYNC,
    SAMPLES_EACH,
    LoopSettings,
    RankGradient,
    RanksUpdate,
    Vector,
    clear_failure,
    run_ranks,
    updates_of,
)

_UPDATE_MS = 1800  # milliseconds for each update during playback
_NO_SYNC_LABELS = ("no micro-batch", "all but the last", "all but the first (a mistake)")
_WEIGHTS = "weight 1", "weight 2"


class TwoRanks(Instrument):
    """Two processes that train a model of two weights with DDP, and their ``.grad`` before and after averaging."""

    title = "Two ranks"

    def controls(self) -> list[Control]:
        """Return the controls for the number of the update, and for the loop's settings."""
        windows = [(number_of(count, "micro-batch", "es"), count) for count in ACCUMULATE]
        return [
            Control.slider("update", "update", 2, range(1, LOOP_UPDATES + 1), plays=_UPDATE_MS),
            Control.choice("accumulate", "accumulate", 1, windows),
            Control.choice("no_sync", "in no_sync()", NO_SYNC[0], zip(_NO_SYNC_LABELS, NO_SYNC, strict=True)),
            Control.choice("forgets", "forgets zero_grad", FORGETS[0], FORGETS),
        ]

    def render(self, values: Settings) -> View:
        """Return a View of one update, or of a notice if the processes failed. The first call runs the processes."""
        settings = LoopSettings(values["accumulate"], values["no_sync"], values["forgets"])
        off = ["no_sync"] if settings.accumulate == 1 else []
        try:
            now = _updates(settings)[values["update"] - 1]
        except RuntimeError as failure:
            message = " ".join(str(failure).split())
            panels = {"ranks": Drawing("two ranks", words=message, notice=message)}
            return View(panels, message, code=settings.source, off=off)
        both = [*now.before, *now.stepped]
        before = draw_rank_gradients("before the all-reduce", now.before, both)
        step = draw_rank_gradients("after it, at step()", now.stepped, both)
        panels = {"before": before, "step": step, "weights": draw_weights(now)}
        lit = settings.line("backward()"), settings.line("step()")
        return View(panels, _state_text(now, settings), _note_text(settings), code=settings.source, off=off, lit=lit)

    def recorded(self) -> Iterable[Settings]:
        """Return settings for all updates of the default loop and its variants. Raises RuntimeError if a rank fails."""
        run_ranks()
        loops: list[dict[str, Any]] = [{}]
        loops += [{"forgets": forgets} for forgets in FORGETS[1:]]
        loops += [{"accumulate": 3, "no_sync": no_sync} for no_sync in NO_SYNC]
        return [{**loop, "update": update} for loop in loops for update in range(1, LOOP_UPDATES + 1)]


def two_ranks(**start: Any) -> TwoRanks:
    """Return a TwoRanks; ``update``, ``accumulate``, ``no_sync`` and ``forgets`` set the controls' start values."""
    instrument = TwoRanks(**start)
    if clear_failure():
        print("Two processes now run each loop once, which takes a few seconds.", flush=True)
    return instrument


@cache
def _updates(settings: LoopSettings) -> tuple[RanksUpdate, ...]:
    same = LoopSettings(1, "off", settings.forgets)  # no_sync has no effect with one micro-batch per update
    return tuple(updates_of(settings, run_ranks()[same if settings.accumulate == 1 else settings]))


def _state_text(now: RanksUpdate, settings: LoopSettings) -> str:
    before, stepped = ([vector_text(rank.grad) for rank in ranks] for ranks in (now.before, now.stepped))
    texts = [f"Update {now.number}. Before the all-reduce, .grad is {before[0]} in rank 0 and {before[1]} in rank 1."]
    if _agree(now.stepped):
        who = f"one process with all {SAMPLES_EACH * settings.accumulate} samples"
        beside = f", as {who} would." if now.off < 1e-3 else f". But {who} would have {vector_text(now.whole)}."
        texts.append(f"After it, both hold the mean, {stepped[0]}{beside}")
    else:
        texts.append(f"At step(), .grad is {stepped[0]} in rank 0 and {stepped[1]} in rank 1.")
    count = number_of(len(now.messages), "all-reduce")
    texts.append(f"{_moved_text(now)} So far: {count}, {sum(now.messages)} bytes from each rank.")
    return " ".join(texts)


def _note_text(settings: LoopSettings) -> str:
    if settings.accumulate > 1 and settings.no_sync == "all but the first":
        drift = "What the others add stays in its own rank, so the weights drift apart, and nothing raises an error."
        return f"Only the first micro-batch is averaged. {drift}"
    notes = []
    if settings.forgets != "none":
        part, beta = ("all", "1") if settings.forgets == "both" else ("half", "0.5")
        same = "Both ranks step with the same mean, so their weights stay equal, and comparing them finds nothing."
        notes.append(f"{same} The mean still holds {part} of the old one: this is momentum {beta}.")
    if settings.accumulate > 1 and settings.no_sync == "off":
        notes.append("Every backward() ends in an all-reduce; only the last one before step() is needed.")
    elif settings.accumulate > 1:
        notes.append(f"One all-reduce for each update instead of {settings.accumulate}, and the same .grad at step().")
    return " ".join(notes)


def _moved_text(now: RanksUpdate) -> str:
    rank_0, rank_1 = (vector_text(path[-1]) for path in now.paths)
    if now.apart == 0:
        return f"The step takes the weights of both ranks to {rank_0}."
    return f"The step takes rank 0 to {rank_0} and rank 1 to {rank_1}: {short(now.apart)} apart."


def vector_text(vector: Vector) -> str:
    """Return a vector of two numbers as text, such as ``(−3.79, −2.39)``."""
    return f"({short(vector[0])}, {short(vector[1])})"


def _agree(ranks: Sequence[RankGradient]) -> bool:
    return bool(np.allclose(ranks[0].grad, ranks[1].grad, atol=1e-6))


def _scene(rank: RankGradient) -> Arrows:
    return Arrows(rank.arrows, rank.grad)


def draw_rank_gradients(title: str, ranks: Sequence[RankGradient], scale: Sequence[RankGradient]) -> Drawing:
    """Draw the ``.grad`` of both ranks, and its parts head to tail, on axes that also fit the arrows of ``scale``."""
    same, marks, names = _agree(ranks), list[Mark](), dict[str, Text]()
    for number, rank in enumerate(ranks):
        for mark in arrow_marks(_scene(rank)):
            marks.insert(0 if mark.id == "sum" else len(marks), replace(mark, id=f"rank {number} {mark.id}"))
        whose = ".grad of both ranks" if same else f".grad of rank {number}"
        labels = [(arrow.names[0], f"arrow {index}") for index, arrow in enumerate(rank.arrows)]
        for text, of in [*(labels if len(labels) > 1 or same else []), (whose, "sum")]:
            mark_id = f"rank {number} {of}"
            names.setdefault(text, Text(f"{mark_id} name", (text,), of=mark_id, where="beside", backed=True))
    parts = {arrow.names[0]: arrow for rank in ranks for arrow in rank.arrows}
    styles = dict.fromkeys(batch_style(arrow.applied[0]) for arrow in parts.values())
    holds = "; ".join(f"{name} {vector_text((arrow.x, arrow.y))}" for name, arrow in parts.items())
    ends = np.concatenate([arrow_ends(_scene(rank)) for rank in scale])
    room = 0.07 * np.ptp(ends, axis=0).max()  # margin that the arrowheads need
    axes = equal_axes([ends - room, ends + np.array([room, 2 * room])], _WEIGHTS)
    grads = "; ".join(f".grad of rank {number} is {vector_text(rank.grad)}" for number, rank in enumerate(ranks))
    marks = [Dots("origin", (0.0, 0.0), "plus", 9.0, stroke="grey", width=1.5), *marks, *names.values()]
    corner, key = ("both the same" if same else "two different gradients",), batch_key([*styles, "sum"])
    return Drawing(title, marks, (axes,), f"{grads}. In them: {holds}.", corner, key=key)


def draw_weights(now: RanksUpdate) -> Drawing:
    """Draw the weight trajectories of both ranks, and of a single process that trains on all samples."""
    ways = [("rank 0", now.paths[0], "weights", "", "triangle", 4.0)]
    ways += [("rank 1 (dotted)", now.paths[1], "weights", "dotted", "down", 4.0)] if now.apart else []
    ways += [("one process (dashed)", now.alone, "ink", "dashed", "ring", 1.5)]
    marks: list[Mark] = []
    for name, path, role, dash, shape, width in ways:
        points, label = np.ravel(path), f"{name}: {vector_text(path[-1])} after {len(path) - 1} updates"
        marks.append(Line(f"{name} way", points, role, width, dash, label))
        marks.append(Dots(name, points, shape, 10.0, stroke=role, width=1.5, words=label))
        text = name if now.apart or role == "ink" else "both ranks"
        marks.append(Text(f"{name} name", (text,), *path[-1], role=f"{role}-text", backed=True))
    axes = equal_axes([np.array(path) for path in (*now.paths, now.alone)], _WEIGHTS)
    description = f"{_moved_text(now)} One process is at {vector_text(now.alone[-1])}."
    corner = ("the ranks are equal" if now.apart == 0 else f"the ranks are {short(now.apart)} apart",)
    return Drawing("weights", marks, (axes,), description, corner)

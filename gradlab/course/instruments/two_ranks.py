"""Two ranks of a DDP training, run by two real processes, statement by statement, with their messages counted."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from typing import Any

from ...drawing import Drawing, draw_message
from ...formatting import number_of, short
from ...widgets import Control, Instrument, Settings, View
from .two_ranks_numbers import (
    ACCUMULATE,
    BATCHES,
    FORGETS,
    MOMENTS,
    NO_SYNC,
    SAMPLES_EACH,
    CannotStartError,
    LoopSettings,
    Moment,
    clear_failure,
    moments_of,
    run_ranks,
)
from .two_ranks_panels import (
    Points,
    count_text,
    draw_messages,
    draw_rank_gradient,
    draw_weights,
    gradient_points,
    vector_text,
    weights_points,
)

_BETWEEN = 900  # milliseconds from one statement to the next while it plays


class TwoRanks(Instrument):
    """Two processes train one model of two weights with DDP: what is in each ``.grad``, and what is sent."""

    title = "Two ranks"

    def controls(self) -> list[Control]:
        """Return the moment, and what the loop is made of."""
        return [
            Control.slider("moment", "statement", 2, range(MOMENTS + 1), plays=_BETWEEN),
            Control.choice(
                "accumulate", "accumulate", 1, [(number_of(count, "micro-batch", "es"), count) for count in ACCUMULATE]
            ),
            Control.choice("no_sync", "in no_sync()", NO_SYNC[0], zip(_NO_SYNC_WORDS, NO_SYNC, strict=True)),
            Control.choice("forgets", "forgets zero_grad", FORGETS[0], FORGETS),
            Control.choice("batches", "samples in rank 0 and 1", BATCHES[0], BATCHES),
        ]

    def render(self, at: Settings) -> View:
        """Show one moment of one loop; the processes run the first time only."""
        settings = LoopSettings(at["accumulate"], at["no_sync"], at["forgets"], at["batches"])
        off = ["no_sync"] if settings.accumulate == 1 else []
        try:
            moments, gradients, weights = _loop(settings)
        except CannotStartError as failure:
            words = " ".join(str(failure).split())
            return View({"ranks": partial(_draw_failure, words)}, words, code=settings.source, off=off)
        now = moments[at["moment"]]
        return View(
            panels={
                "rank 0": partial(draw_rank_gradient, now, 0, gradients),
                "rank 1": partial(draw_rank_gradient, now, 1, gradients),
                "messages": partial(draw_messages, moments, now, settings),
                "weights": partial(draw_weights, now, weights),
            },
            state=_state_text(now, settings),
            note=_note_text(settings),
            code=settings.source,
            off=off,
            lit=settings.lines(now.statement),
        )

    def recorded(self) -> Iterable[Settings]:
        """Return every moment of the loops that differ from the first in one idea; CannotStartError without any."""
        run_ranks()
        loops: list[dict[str, Any]] = [{}]
        loops += [{"forgets": forgets} for forgets in FORGETS[1:]]
        loops += [{"batches": batches} for batches in BATCHES[1:]]
        loops += [{"accumulate": 3, "no_sync": no_sync} for no_sync in NO_SYNC]
        return [{**loop, "moment": moment} for loop in loops for moment in range(MOMENTS + 1)]


def two_ranks(**start: Any) -> TwoRanks:
    """Return two ranks; ``moment``, ``accumulate``, ``no_sync``, ``forgets`` and ``batches`` set where they start."""
    instrument = TwoRanks(**start)
    if clear_failure():
        print("Two processes now run each of the loops once: a few seconds.", flush=True)
    return instrument


_NO_SYNC_WORDS = ("no micro-batch", "all but the last", "all but the first (a mistake)")


@cache
def _loop(settings: LoopSettings) -> tuple[list[Moment], Points, Points]:
    """Return the moments of a loop, and what its pictures have to hold."""
    same = LoopSettings(1, "off", settings.forgets, settings.batches)  # no_sync has no effect without a window
    moments = moments_of(settings, run_ranks()[same if settings.accumulate == 1 else settings])
    return moments, gradient_points(moments), weights_points(moments)


def _draw_failure(words: str, width: int, height: int) -> Drawing:
    return draw_message(words, "two ranks", width, height)


def _state_text(moment: Moment, settings: LoopSettings) -> str:
    """Say what the newest statement did in both ranks."""
    if moment.statement == "start":
        return "Both ranks start with the same weights, and with no .grad."
    where = f"Update {moment.update} of {settings.updates}"
    if moment.statement == "zero_grad":
        return f"{where}, zero_grad: {_cleared(moment, settings)}"
    if moment.statement == "step":
        return f"{where}, step: {_moved(moment)} {count_text(moment)} so far."
    of = f" of micro-batch {moment.micro}" if settings.accumulate > 1 else ""
    if moment.statement == "backward":
        return f"{where}, backward{of}: before any message, {_held(moment)}."
    if moment.quiet:
        within = f"micro-batch {moment.micro} is inside no_sync()"
        return f"{where}, {within}: nothing is sent, {_held(moment)}.{_beside_one(moment, settings)}"
    mean = vector_text(moment.ranks[0].grad or (0.0, 0.0))
    said = f"each rank hands in {moment.sent} bytes, and both get the mean: .grad is {mean}."
    return f"{where}, all-reduce{of}: {said}{_beside_one(moment, settings)}"


def _note_text(settings: LoopSettings) -> str:
    """Say what these settings lead to, and why."""
    notes = []
    drifts = settings.accumulate > 1 and settings.no_sync == "all but the first"
    if settings.forgets != "none" and not drifts:
        part, beta = ("all", "1") if settings.forgets == "both" else ("half", "0.5")
        notes.append(
            "Both ranks step with the same mean, so their weights stay equal, and comparing them finds nothing. "
            f"The mean still holds {part} of the old one: this is momentum {beta}."
        )
    if drifts:
        notes.append(
            "Only the first micro-batch is averaged. What the others add stays in its own rank, so the weights drift "
            "apart, and nothing raises an error."
        )
    elif settings.accumulate > 1 and settings.no_sync == "off":
        notes.append("Every backward() ends in an all-reduce; only the last one before step() is needed.")
    elif settings.accumulate > 1:
        notes.append(f"One all-reduce for each update instead of {settings.accumulate}, and the same .grad at step().")
    if settings.batches == "12 and 4":
        notes.append(
            "Each rank's mean has half the say: a sample of rank 1 counts three times as much as one of rank 0."
        )
    elif settings.batches == "12 and 4, weighted":
        notes.append("Each loss is weighted by its number of samples: every sample counts the same.")
    return " ".join(notes)


def _cleared(moment: Moment, settings: LoopSettings) -> str:
    if settings.forgets == "none":
        return "both ranks clear .grad."
    who = "rank 0 clears .grad, rank 1 forgets" if settings.forgets == "rank 1" else "both ranks forget it"
    return f"{who}: {_held(moment)}." if moment.ranks[1].grad else f"{who}, and there is nothing to clear yet."


def _held(moment: Moment) -> str:
    zero, one = (vector_text(rank.grad) if rank.grad else "None" for rank in moment.ranks)
    return f".grad is {zero} in rank 0 and {one} in rank 1"


def _moved(moment: Moment) -> str:
    zero, one = (rank.path[-1] for rank in moment.ranks)
    if moment.apart == 0:
        return f"the weights of both ranks are {vector_text(zero)}."
    return f"rank 0 is at {vector_text(zero)}, rank 1 at {vector_text(one)}: {short(moment.apart)} apart."


def _beside_one(moment: Moment, settings: LoopSettings) -> str:
    """Compare with one process, once the window is complete."""
    if not moment.complete:
        return ""
    rank = moment.ranks[0]
    who = f" One process with all {SAMPLES_EACH * settings.accumulate} samples would have"
    if rank.off < 1e-3:
        return f"{who} the same."
    of = "rank 0" if moment.apart or moment.quiet else ".grad"
    return f"{who} {vector_text(rank.whole)}: {of} is off by {rank.off:.0%}."

"""The instrument: two ranks of a DDP training, statement by statement, with their messages counted."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from typing import Any

from ....drawing import Drawing, draw_message
from ....widgets import Instrument, Knob, Settings, View
from .loop import ACCUMULATE, BATCHES, FORGETS, MOMENTS, NO_SYNC, LoopSettings
from .measure import CannotStartError, best_weights, run_ranks
from .message_panel import draw_messages
from .moments import Moment, moments_of
from .panels import Extent, draw_gradient, draw_weights, gradient_extent, weights_extent
from .words import note_text, state_text

_BETWEEN = 900  # milliseconds from one statement to the next while it plays


class TwoRanks(Instrument):
    """Two processes train one model of two weights with DDP: what is in each ``.grad``, and what is sent."""

    title = "Two ranks"

    def knobs(self) -> list[Knob]:
        """Return the moment, and what the loop is made of."""
        return [
            Knob.slider("moment", "statement", 2, range(MOMENTS + 1), plays=_BETWEEN),
            Knob.choice("accumulate", "accumulate", 1, [(_plural(count), count) for count in ACCUMULATE]),
            Knob.choice("no_sync", "in no_sync()", NO_SYNC[0], zip(_NO_SYNC_WORDS, NO_SYNC, strict=True)),
            Knob.choice("forgets", "forgets zero_grad", FORGETS[0], FORGETS),
            Knob.choice("batches", "samples in rank 0 and 1", BATCHES[0], BATCHES),
        ]

    def look(self, at: Settings) -> View:
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
                "rank 0": partial(draw_gradient, now, 0, gradients),
                "rank 1": partial(draw_gradient, now, 1, gradients),
                "messages": partial(draw_messages, moments, now, settings),
                "weights": partial(draw_weights, now, weights, best_weights()),
            },
            state=state_text(now, settings),
            note=note_text(settings),
            code=settings.source,
            off=off,
            lit=settings.lines(now.statement),
        )

    def recorded(self) -> Iterable[Settings]:
        """Return every moment of the loops that differ from the first in one idea."""
        loops: list[dict[str, Any]] = [{}]
        loops += [{"forgets": forgets} for forgets in FORGETS[1:]]
        loops += [{"batches": batches} for batches in BATCHES[1:]]
        loops += [{"accumulate": 3, "no_sync": no_sync} for no_sync in NO_SYNC]
        return [{**loop, "moment": moment} for loop in loops for moment in range(MOMENTS + 1)]


def two_ranks(**start: Any) -> TwoRanks:
    """Return two ranks; ``moment``, ``accumulate``, ``no_sync``, ``forgets`` and ``batches`` set where they start."""
    instrument = TwoRanks(**start)
    if not run_ranks.cache_info().currsize:
        print("Two processes now run each of the loops once: a few seconds.", flush=True)
    return instrument


_NO_SYNC_WORDS = ("no micro-batch", "all but the last", "all but the first (a mistake)")


def _plural(count: int) -> str:
    return f"{count} micro-batch{'es' * (count > 1)}"


@cache
def _loop(settings: LoopSettings) -> tuple[list[Moment], Extent, Extent]:
    """Return the moments of a loop, and what its pictures have to hold."""
    same = LoopSettings(1, "off", settings.forgets, settings.batches)  # no_sync has no effect without a window
    moments = moments_of(settings, run_ranks()[same if settings.accumulate == 1 else settings])
    return moments, gradient_extent(moments), weights_extent(moments, best_weights())


def _draw_failure(words: str, width: int, height: int) -> Drawing:
    return draw_message(words, "two ranks", width, height)

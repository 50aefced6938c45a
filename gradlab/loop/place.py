"""Place: where a run was, as all that leads there again from its start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .recipe import Recipe
from .run import Run


@dataclass(frozen=True)
class Place:
    """The loops that a run went through, and how far it was. A Run is deterministic, so making it anew leads there.

    A copy of its tensors would not do: a loop of the learner's own keeps what it likes in its own variables.
    """

    loops: tuple[tuple[int, Recipe | str], ...]
    """What ran, as (updates made before it, a Recipe or a text of the learner's own)."""
    start_weights: tuple[float, ...] | None
    updates: int
    statements: int
    """Those that have run since the newest update."""


def place_of(run: Run) -> Place | None:
    """Return where a run is, None for its start, and for a run whose loops are not all known."""
    if not run.all_loops_known or not (run.updates or run.statements_since_update):
        return None
    return Place(tuple(run.loops), run.start_weights, run.updates, run.statements_since_update)


def begin_again_for(run: Run, place: Place) -> None:
    """Begin a run again as it began before it came to this place."""
    _take(run, place.loops[0][1])
    run.reset(place.start_weights)


def go_on_to(run: Run, place: Place, advance_to: Callable[[int], object]) -> None:
    """Go through the same loops to the place; ``advance_to`` trains to an update, as whoever calls does it."""
    for at, loop in place.loops[1:]:
        advance_to(at)
        _take(run, loop)
    advance_to(place.updates)
    for _ in range(place.statements):
        run.step()


def _take(run: Run, loop: Recipe | str) -> None:
    run.edit(loop) if isinstance(loop, str) else run.switch(loop)

"""RunPoint: where a run was, as all that leads there again from its start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .recipe import Recipe
from .run import Run


@dataclass(frozen=True)
class RunPoint:
    """The loops that a run went through, and how far it was. A Run is deterministic, so making it anew leads there.

    A copy of its tensors would not do: a loop of the learner's own keeps what it likes in its own variables.
    """

    loops: tuple[tuple[int, Recipe | str], ...]
    """What ran, as (updates made before it, a Recipe or a text of the learner's own)."""
    start_weights: tuple[float, ...] | None
    updates: int
    statements: int
    """Those that have run since the newest update."""


def run_point(run: Run) -> RunPoint | None:
    """Return where a run is, None for its start, and for a run whose loops are not all known."""
    if not run.all_loops_known or not (run.updates or run.statements_since_update):
        return None
    return RunPoint(tuple(run.loops), run.start_weights, run.updates, run.statements_since_update)


def begin_again_for(run: Run, point: RunPoint) -> None:
    """Begin a run again as it began before it came to this point."""
    run.reset(point.start_weights, point.loops[0][1])


def go_on_to(
    run: Run, point: RunPoint, advance_to: Callable[[int], object], take: Callable[[Recipe | str], object]
) -> None:
    """Go through the same loops to the point; ``advance_to`` trains to an update, ``take`` goes over to a loop."""
    for at, loop in point.loops[1:]:
        advance_to(at)
        take(loop)
    advance_to(point.updates)
    for _ in range(point.statements):
        run.step()

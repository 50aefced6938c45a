"""What the events of a record come to: questions answered, exercises solved and minutes spent, for each notebook."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from ...widgets import CHECK, GUESS, RecordEvent, question_names
from ..exercises import exercise_notebooks
from .series import series_notebooks

LONGEST_PAUSE = timedelta(minutes=15)
"""A longer pause between two events of a notebook does not count as time spent in it."""


@dataclass(frozen=True)
class NotebookTally:
    """What was done in a notebook, and what there is to do."""

    answered: int
    questions: int
    solved: int
    exercises: int
    minutes: int

    @property
    def begun(self) -> bool:
        """Whether anything has been answered or solved."""
        return bool(self.answered or self.solved)

    @property
    def done(self) -> bool:
        """Whether everything has been answered and solved."""
        return (self.answered, self.solved) == (self.questions, self.exercises)


def notebook_tallies(events: Iterable[RecordEvent]) -> dict[str, NotebookTally]:
    """Return the tally of each notebook by its number."""
    events = tuple(events)
    guessed = {event.name for event in events if event.kind == GUESS}
    passed = {event.name for event in events if event.kind == CHECK and event.right}
    homes = {name: notebook[:2] for name, notebook in exercise_notebooks().items()}
    homes |= {name: name.partition("/")[0] for name in question_names()}
    found = {}
    for notebook in series_notebooks():
        number = notebook.number
        here = {name for name, home in homes.items() if home == number}
        questions = here.intersection(question_names())
        exercises = here - questions
        times = [event.at for event in events if number in (homes.get(event.name), event.name.partition("/")[0])]
        found[number] = NotebookTally(
            len(guessed & questions), len(questions), len(passed & exercises), len(exercises), _minutes(times)
        )
    return found


def _minutes(times: Iterable[datetime]) -> int:
    """Add up the time from each event to the next, leaving out long pauses; whole minutes."""
    ordered = sorted(times)
    gaps = [later - earlier for earlier, later in pairwise(ordered)]
    spent = sum((gap for gap in gaps if gap <= LONGEST_PAUSE), timedelta())
    return int(spent.total_seconds() // 60)

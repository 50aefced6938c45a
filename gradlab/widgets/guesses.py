"""The guesses of a kernel, and the first guess at each question that the learner's record holds."""

from __future__ import annotations

from .learner_record import GUESS, RECORD, LearnerRecord, RecordEvent, first_guesses


class Guesses:
    """What is guessed in this kernel, and what was guessed before it. The first guess at a question counts."""

    def __init__(self, record: LearnerRecord | None = None) -> None:
        """Start with none in this kernel. Without a record they are kept here only."""
        self._made: dict[str, str] = {}
        self._record = record or LearnerRecord(lambda: None)

    def get(self, question: str) -> str | None:
        """Return the guess in this kernel at the question with this name, None before it is made."""
        return self._made.get(question)

    def earlier(self, question: str) -> RecordEvent | None:
        """Return the first guess at this question that is on record, None where there is none."""
        return self._first().get(question)

    def record(self, question: str, guess: str, right: bool) -> None:
        """Keep the guess for a question, here and in the record."""
        self._made[question] = guess
        self._record.add(GUESS, question, guess, right)

    def recall(self, question: str, guess: str) -> None:
        """Keep a guess that is on record already as the one of this kernel."""
        self._made[question] = guess

    def visit(self, notebook: str) -> None:
        """Note that the learner is in this notebook."""
        self._record.visit(notebook)

    def score_text(self, notebook: str) -> str:
        """How many first guesses were right, in words: in the notebook, and in the series where that is more."""
        first = self._first()
        here = [event.right for name, event in first.items() if name.partition("/")[0] == notebook]
        if len(here) == len(first):
            return f"Your guesses so far: {sum(here)} of {len(here)} right."
        right = sum(event.right for event in first.values())
        return (
            f"Your guesses so far: {sum(here)} of {len(here)} right in this notebook, "
            f"{right} of {len(first)} in the series."
        )

    def _first(self) -> dict[str, RecordEvent]:
        return first_guesses(self._record.read().events)


# A kernel is one learner with one notebook. A cell that is run again makes a new Prediction, which must find the guess:
# so this outlives them.
GUESSES = Guesses(RECORD)

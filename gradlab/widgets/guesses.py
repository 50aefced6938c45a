"""The guesses of a notebook, kept as long as its kernel lives."""

from __future__ import annotations


class Guesses:
    """What was guessed for each question, and how many were right."""

    def __init__(self) -> None:
        """Start with none."""
        self._made: dict[str, tuple[str, bool]] = {}

    def get(self, question: str) -> str | None:
        """Return the guess for the question with this name, None before it is made."""
        made = self._made.get(question)
        return None if made is None else made[0]

    def record(self, question: str, guess: str, right: bool) -> None:
        """Keep the guess for a question."""
        self._made[question] = guess, right

    @property
    def score_text(self) -> str:
        """How many guesses were right, in words."""
        right = sum(good for _, good in self._made.values())
        return f"Your guesses so far: {right} of {len(self._made)} right."


# A kernel is one learner with one notebook. A cell that is run again makes a new Prediction, which must find the guess:
# so this is the one thing in the widgets that outlives them.
GUESSES = Guesses()

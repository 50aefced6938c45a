"""Exercises: a spec, a stub, random cases, hints, and verdicts that name typical mistakes.

The exercises of notebook 03 are in ``nb03.md`` and ``nb03.py``. README.md says how to write one.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..._checks import near_names
from .texts import Exercise, Verdict, read_exercises

__all__ = ["Exercise", "Verdict", "exercise", "exercise_texts"]


@cache
def exercise_texts() -> dict[str, Exercise]:
    """Read all exercises by name, in the order of the series and, in a notebook, from easy to harder; no PyTorch."""
    files = sorted(Path(__file__).parent.glob("nb*.md"))
    return {name: text for path in files for name, text in read_exercises(path).items()}


def exercise(name: str) -> Exercise:
    """Find an exercise by its name: ``.spec`` is the task, ``.check(answer)`` returns a Verdict.

    Raises TypeError or ValueError for an unknown name, with similar names.
    """
    if not isinstance(name, str):
        raise TypeError(f"exercise: name must be a text such as 'decay_groups', got {name!r}")
    if name not in exercise_texts():
        near = near_names(name, exercise_texts(), 0.5) or list(exercise_texts())
        raise ValueError(f"exercise: there is none called {name!r}; there is {', '.join(near)}")
    return exercise_texts()[name]

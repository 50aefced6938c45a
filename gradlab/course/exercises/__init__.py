"""Exercises, each with a spec, a stub, hints, a solution, and a check whose verdict can name a typical mistake.

The exercises of notebook 03, for example, are in ``nb03.md`` and ``nb03.py``. README.md explains how to write one.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..._checks import near_names
from .texts import Exercise, Verdict, read_exercises

__all__ = ["Exercise", "Verdict", "exercise", "exercise_texts"]


@cache
def exercise_texts() -> dict[str, Exercise]:
    """Return all exercises by name, ordered by notebook and then from easy to hard, without importing PyTorch."""
    files = sorted(Path(__file__).parent.glob("nb*.md"))
    return {name: text for path in files for name, text in read_exercises(path).items()}


def exercise(name: str) -> Exercise:
    """Return an exercise by its name: its ``spec`` is the task, and its ``check(answer)`` returns a Verdict.

    Raises TypeError if ``name`` is not a string, and ValueError, with suggestions, if there is no such exercise.
    """
    if not isinstance(name, str):
        raise TypeError(f"exercise: name must be a string such as 'decay_groups', got {name!r}")
    if name not in exercise_texts():
        near = near_names(name, exercise_texts(), 0.5) or list(exercise_texts())
        raise ValueError(f"exercise: name must be the name of an exercise, such as {', '.join(near)}, got {name!r}")
    return exercise_texts()[name]

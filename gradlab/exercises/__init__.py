"""Exercises: a spec, a stub, random cases, hints, and verdicts that know the typical wrong answers by name."""

from __future__ import annotations

import difflib
import importlib

from .base import Exercise, Mistake
from .verdict import Verdict

__all__ = ["Exercise", "Mistake", "Verdict", "exercise", "names"]

# One package a notebook, in the order of the series; each has a file an exercise, and lists them in EXERCISES.
_LESSONS = (
    "start_here",
    "autograd",
    "backward_adds",
    "forgetting_zero_grad",
    "zero_grad",
    "set_to_none",
    "optimizer_step",
    "gradient_accumulation",
    "mixed_precision",
    "gpu_memory",
    "loop_doctor",
    "many_devices",
    "fact_check",
    "cheat_sheet",
)


def _all() -> dict[str, type[Exercise]]:
    """Return every exercise by its name, in the order of the series."""
    lessons = (importlib.import_module(f".{lesson}", __name__) for lesson in _LESSONS)
    return {made.name: made for lesson in lessons for made in lesson.EXERCISES}


def names() -> tuple[str, ...]:
    """Return the names of all exercises, in the order of the series."""
    return tuple(_all())


def exercise(name: str) -> Exercise:
    """Return the exercise of this name: ``.spec`` says what to do, ``.check(answer)`` returns a Verdict.

    Raises TypeError or ValueError for a name that is none, with those that come close.
    """
    if not isinstance(name, str):
        raise TypeError(f"exercise: name must be a text such as 'curvature_from', got {name!r}")
    known = _all()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or list(known)
        raise ValueError(f"exercise: there is none called {name!r}; there is {', '.join(near)}")
    return known[name]()

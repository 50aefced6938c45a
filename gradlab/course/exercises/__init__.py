"""Exercises: a spec, a stub, random cases, hints, and verdicts that know the typical wrong answers by name.

The exercises of notebook 03 are ``nb03.md`` and ``nb03.py``, found by being there. README.md says how to write one.
"""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path

from ..._checks import near_names
from .base import Exercise, ExerciseText, read_texts
from .definition import Definition, Verdict

__all__ = ["Exercise", "Verdict", "exercise", "exercise_names", "exercise_notebooks", "exercise_texts"]


def exercise_names() -> tuple[str, ...]:
    """Return the names of all exercises, in the order of the series and, within a notebook, from easy to harder."""
    return tuple(exercise_texts())


def exercise_notebooks() -> dict[str, str]:
    """Return the notebook in which each exercise stands: ``"03_forgetting_zero_grad"``."""
    return {name: text.notebook for name, text in exercise_texts().items()}


@cache
def exercise_texts() -> dict[str, ExerciseText]:
    """Return the words of every exercise by its name, in the order of ``exercise_names``; imports no PyTorch."""
    files = sorted(Path(__file__).parent.glob("nb*.md"))
    return {name: text for path in files for name, text in read_texts(path).items()}


def exercise(name: str) -> Exercise:
    """Return the exercise of this name: ``.spec`` says what to do, ``.check(answer)`` returns a Verdict.

    Raises TypeError or ValueError for an unknown name, with the names that come close.
    """
    if not isinstance(name, str):
        raise TypeError(f"exercise: name must be a text such as 'curvature_from', got {name!r}")
    texts = exercise_texts()
    if name not in texts:
        near = near_names(name, texts, 0.5) or list(texts)
        raise ValueError(f"exercise: there is none called {name!r}; there is {', '.join(near)}")
    text = texts[name]
    module = importlib.import_module(f".nb{text.notebook[:2]}", __name__)
    definition = getattr(module, name, None)
    if not isinstance(definition, Definition):
        raise ValueError(f"exercise {name}: its words are there, no `{name} = Definition(...)` in {module.__file__}")
    if list(definition.mistakes) != list(text.remarks):
        both = f"{list(definition.mistakes)} in the .py, {list(text.remarks)} in the .md"
        raise ValueError(f"exercise {name}: the mistakes and their remarks must be the same, in one order: {both}")
    return Exercise(**vars(text), name=name, definition=definition)

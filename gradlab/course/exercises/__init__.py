"""Exercises: a spec, a stub, random cases, hints, and verdicts that know the typical wrong answers by name.

An exercise is a ``.py`` and an ``.md`` of one name in the folder of its notebook (``nb03_forgetting_zero_grad``), found
by being there. README.md says how to write one.
"""

from __future__ import annotations

import difflib
import importlib
from functools import cache
from pathlib import Path

from .base import Exercise, Mistake
from .text import EXERCISE_LEVELS, ExerciseText, read_text
from .verdict import Verdict

__all__ = ["Exercise", "Mistake", "Verdict", "exercise", "exercise_names", "exercise_notebooks", "exercise_texts"]

_HERE = Path(__file__).parent


def exercise_names() -> tuple[str, ...]:
    """Return the names of all exercises, in the order of the series and, within a notebook, from easy to harder."""
    return tuple(_texts())


def exercise_notebooks() -> dict[str, str]:
    """Return the notebook in which each exercise stands: ``"03_forgetting_zero_grad"``."""
    return {path.stem: path.parent.name.removeprefix("nb") for path in _paths()}


def exercise_texts() -> dict[str, ExerciseText]:
    """Return the words of every exercise by its name, in the order of ``exercise_names``; imports no PyTorch."""
    return {name: text for name, (_, text) in _texts().items()}


def exercise(name: str) -> Exercise:
    """Return the exercise of this name: ``.spec`` says what to do, ``.check(answer)`` returns a Verdict.

    Raises TypeError or ValueError for an unknown name, with the names that come close.
    """
    if not isinstance(name, str):
        raise TypeError(f"exercise: name must be a text such as 'curvature_from', got {name!r}")
    texts = _texts()
    if name not in texts:
        near = difflib.get_close_matches(name, texts, n=3, cutoff=0.5) or list(texts)
        raise ValueError(f"exercise: there is none called {name!r}; there is {', '.join(near)}")
    folder, text = texts[name]
    definition = importlib.import_module(f".{folder}.{name}", __name__).DEFINITION
    if list(definition.mistakes) != list(text.remarks):
        both = f"{list(definition.mistakes)} in the .py, {list(text.remarks)} in the .md"
        raise ValueError(f"exercise {name}: the mistakes and their remarks must be the same, in one order: {both}")
    return Exercise(
        name=name,
        notebook=folder.removeprefix("nb"),
        title=text.title,
        level=text.level,
        minutes=text.minutes,
        spec=text.spec,
        stub=text.stub,
        hints=text.hints,
        mistakes=tuple(Mistake(key, text.remarks[key], wrong) for key, wrong in definition.mistakes.items()),
        solution=text.solution,
        definition=definition,
    )


@cache
def _texts() -> dict[str, tuple[str, ExerciseText]]:
    """Return the folder and the text of every exercise by its name, in order; imports none of them."""
    found = [(path.parent.name, path.stem, read_text(path)) for path in _paths()]
    found.sort(key=lambda each: (each[0], EXERCISE_LEVELS.index(each[2].level), each[1]))
    return {name: (folder, text) for folder, name, text in found}


def _paths() -> list[Path]:
    """Return the texts of the exercises that have a check."""
    return [path for path in _HERE.glob("nb*/*.md") if path.with_suffix(".py").exists()]

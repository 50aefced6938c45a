"""The questions of the notebooks: one TOML file for each notebook, in the folder ``questions``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from .._checks import near_names


@dataclass(frozen=True)
class Option:
    """One of the answers to choose from. ``remark`` says what is wrong with it and is empty for the right one."""

    text: str
    remark: str = ""


@dataclass(frozen=True)
class Question:
    """A question with its options; ``answer`` is the place of the right one, ``why`` the reason."""

    name: str
    text: str
    options: tuple[Option, ...]
    answer: int
    why: str


def find_question(name: str) -> Question:
    """Return the question with this name; ValueError with the names that are nearest where there is none."""
    if not isinstance(name, str):
        raise TypeError(f'predict: the name must be a text such as "03/where-do-the-weights-go", got {name!r}')
    notebook, _, slug = name.partition("/")
    questions = _questions_of(notebook) if notebook in notebook_numbers() else {}
    if slug not in questions:
        raise ValueError(f"predict: there is no question {name!r}; {_nearest(name)}")
    return questions[slug]


@cache
def notebook_numbers() -> tuple[str, ...]:
    """Return the numbers of the notebooks that have questions: "00", "01" and so on."""
    names = (file.name for file in files("gradlab.widgets").joinpath("questions").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


@cache
def question_names() -> tuple[str, ...]:
    """Return the names of all questions."""
    return tuple(f"{notebook}/{slug}" for notebook in notebook_numbers() for slug in _questions_of(notebook))


def _nearest(name: str) -> str:
    """Say which names are like this one, or else where names come from."""
    if near := near_names(name, question_names(), 0.5):
        return f"near names are {', '.join(map(repr, near))}"
    notebook = name.partition("/")[0]
    if notebook in notebook_numbers():
        return f"notebook {notebook} has {', '.join(f'{notebook}/{slug}' for slug in _questions_of(notebook))}"
    return f"a name begins with the number of a notebook: {', '.join(notebook_numbers())}"


@cache
def _questions_of(notebook: str) -> Mapping[str, Question]:
    """Read the questions of a notebook, by slug."""
    text = files("gradlab.widgets").joinpath("questions", f"{notebook}.toml").read_text(encoding="utf-8")
    return {slug: read_question(f"{notebook}/{slug}", entry) for slug, entry in tomllib.loads(text).items()}


def read_question(name: str, entry: Mapping[str, Any]) -> Question:
    """Return a question from its entry in a TOML file, in which one option has ``right = true``."""
    options = entry["options"]
    (right,) = (place for place, option in enumerate(options) if option.get("right"))
    made = tuple(Option(option["text"], option.get("remark", "")) for option in options)
    return Question(name, entry["question"], made, right, entry["why"])

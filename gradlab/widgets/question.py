"""The questions of the notebooks: one TOML file for each notebook, in the folder ``questions``."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from operator import attrgetter
from typing import Any

from .._checks import near_names


@dataclass(frozen=True)
class Option:
    """An answer to choose; ``remark`` explains why the answer is wrong, and is "" for the right answer.

    ``course`` is the loss curve that the answer predicts, relative to the loss at the start, or () if there is none.
    """

    text: str
    remark: str = ""
    course: tuple[float, ...] = ()


@dataclass(frozen=True)
class LossCourse:
    """The part of a lab's loss curve that a question is about, which begins at ``after`` and is ``over`` updates long.

    ``after`` is an update, or a switch such as "zero_grad off". The answer is clear after ``decided`` updates.
    """

    after: int | str
    over: int
    decided: int


@dataclass(frozen=True)
class Question:
    """A question with its options; ``answer`` is the index of the right option, and ``why`` explains the answer.

    ``loss`` is None unless the options predict loss curves, to be drawn in the loss panel of the lab that follows.
    """

    name: str
    text: str
    options: tuple[Option, ...]
    answer: int
    why: str
    loss: LossCourse | None = None


def find_question(name: str) -> Question:
    """Return the question ``name``. Raises TypeError unless ``name`` is a string, and ValueError if it is unknown."""
    if not isinstance(name, str):
        raise TypeError(f'predict: the name must be a string such as "03/where-do-the-weights-go", got {name!r}')
    if name in _questions():
        return _questions()[name]
    notebook = name.partition("/")[0]
    names = [each for each in question_names() if each.startswith(f"{notebook}/")]
    if near := near_names(name, question_names(), 0.5):
        nearest = f"similar names are {', '.join(map(repr, near))}"
    elif names:
        nearest = f"notebook {notebook} has {', '.join(names)}"
    else:
        numbers = dict.fromkeys(each.partition("/")[0] for each in question_names())
        nearest = f"a name begins with the number of a notebook: {', '.join(numbers)}"
    raise ValueError(f"predict: there is no question {name!r}; {nearest}")


def question_names() -> tuple[str, ...]:
    """Return the names of all questions."""
    return tuple(_questions())


@cache
def _questions() -> dict[str, Question]:
    questions = {}
    for file in sorted(files("gradlab.widgets").joinpath("questions").iterdir(), key=attrgetter("name")):
        notebook, _, kind = file.name.partition(".")
        for slug, entry in tomllib.loads(file.read_text(encoding="utf-8")).items() if kind == "toml" else ():
            questions[f"{notebook}/{slug}"] = read_question(f"{notebook}/{slug}", entry)
    return questions


def read_question(name: str, entry: Mapping[str, Any]) -> Question:
    """Return the question ``name`` from its entry in a TOML file; one option of the entry has ``right = true``.

    The options are shuffled with a seed made from the name, so that their positions do not reveal the answer.
    """
    options = entry["options"].copy()
    random.Random(f"{name}ns").shuffle(options)  # "ns" was chosen to spread the right answers evenly over the positions
    (right,) = (index for index, option in enumerate(options) if option.get("right"))
    texts = tuple(Option(each["text"], each.get("remark", ""), tuple(each.get("course", ()))) for each in options)
    loss = LossCourse(**entry["loss"]) if "loss" in entry else None
    return Question(name, entry["question"], texts, right, entry["why"], loss)

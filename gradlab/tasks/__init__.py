"""Ready-made tasks: a model, data and a loss each, seeded, small enough for a laptop."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .bowl import bowl
from .digits import digits
from .line import line
from .spiral import spiral
from .task import Task
from .text import text

__all__ = ["Task", "bowl", "digits", "get", "line", "names", "resolve", "spiral", "text"]


def names() -> list[str]:
    """Return the names of the ready-made tasks, simplest first."""
    return ["bowl", "line", "spiral", "digits", "text"]


def get(name: str, **options: Any) -> Task:
    """Return a task by its name; the options are those of the function of that name.

    Raises TypeError for a name that is no text and for an option that the task has not, ValueError for another name.
    """
    allowed = ", ".join(map(repr, names()))
    if not isinstance(name, str):
        raise TypeError(f"name must be one of {allowed}, got {name!r}")
    if name not in names():
        raise ValueError(f"name must be one of {allowed}, got {name!r}")
    makers: dict[str, Callable[..., Task]]
    makers = {"bowl": bowl, "line": line, "spiral": spiral, "digits": digits, "text": text}
    make = makers[name]
    known = inspect.signature(make).parameters
    for option, value in options.items():
        if option not in known:
            raise TypeError(f"options of {name!r} must be among {', '.join(known) or 'none'}, got {option}={value!r}")
    return make(**options)


def resolve(task: Any, who: str) -> Task:
    """Return a task that was given as itself or by its name; ``who`` asked for it, and is named in the TypeError."""
    if isinstance(task, str):
        return get(task)
    if not isinstance(task, Task):
        raise TypeError(f"{who}: task must be a Task or one of {', '.join(map(repr, names()))}, got {task!r}")
    return task

"""Ready-made tasks, each with a model, data and a loss. They are seeded, and small enough for a laptop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._checks import did_you_mean, one_of, without_values
from .bowl import bowl
from .digits import digits
from .line import line
from .task import HeldOutImages, Task, TwoWeights
from .text import text

__all__ = ["HeldOutImages", "Task", "TwoWeights", "bowl", "digits", "get", "line", "names", "resolve", "text"]

_TASKS: dict[str, Callable[..., Task]] = {"bowl": bowl, "line": line, "digits": digits, "text": text}
"""The functions that return the ready-made tasks, by name, simplest first."""


def names() -> list[str]:
    """Return the names of the ready-made tasks, simplest first."""
    return list(_TASKS)


def get(name: str, **options: Any) -> Task:
    """Return the task ``name``, created by the function of this name with the keyword arguments ``options``.

    Raises TypeError if ``name`` is not a string, and ValueError if the name is unknown.
    """
    return _TASKS[one_of("tasks.get: name", name, names())](**options)


def resolve(task: Any, caller: str) -> Task:
    """Return a Task, given as such or by name. Raises TypeError or ValueError, whose message begins with ``caller``."""
    if isinstance(task, Task):
        return task
    if isinstance(task, str) and task in _TASKS:
        return get(task)
    error = ValueError if isinstance(task, str) else TypeError
    allowed = f"a Task or one of {', '.join(map(repr, names()))}"
    raise error(f"{caller}: task must be {allowed}, got {without_values(task)}{did_you_mean(task, names())}")

"""Ready-made tasks: a model, data and a loss each, seeded, small enough for a laptop.

A module that defines a function of its own name and a DIFFICULTY is a task.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._checks import brief, did_you_mean, one_of
from .task import HeldOutImages, Task, TwoWeights

if TYPE_CHECKING:
    from .bowl import bowl as bowl
    from .digits import digits as digits
    from .line import line as line
    from .text import text as text


def _found() -> dict[str, Callable[..., Task]]:
    """Return the tasks that lie in this folder, the simplest first."""
    modules = [importlib.import_module(f".{each.name}", __name__) for each in pkgutil.iter_modules(__path__)]
    tasks = sorted((m for m in modules if hasattr(m, "DIFFICULTY")), key=lambda module: module.DIFFICULTY)
    return {name: getattr(module, name) for module in tasks if (name := module.__name__.rpartition(".")[2])}


_TASKS = _found()
globals().update(_TASKS)  # the function bowl, not the module of that name
__all__ = ["HeldOutImages", "Task", "TwoWeights", "get", "names", "resolve", *_TASKS]


def names() -> list[str]:
    """Return the names of the ready-made tasks, simplest first."""
    return list(_TASKS)


def get(name: str, **options: Any) -> Task:
    """Return a task by its name; the options are those of the function of that name.

    Raises TypeError for a name that is no text, ValueError for another name.
    """
    return _TASKS[one_of("tasks.get: name", name, names())](**options)


def resolve(task: Any, who: str) -> Task:
    """Return a task that was given as itself or by its name; TypeError and ValueError name ``who`` asked for it."""
    if isinstance(task, Task):
        return task
    if isinstance(task, str) and task in _TASKS:
        return get(task)
    error = ValueError if isinstance(task, str) else TypeError
    allowed = f"a Task or one of {', '.join(map(repr, names()))}"
    raise error(f"{who}: task must be {allowed}, got {brief(task)}{did_you_mean(task, names())}")

"""A run's state as a line of Python that brings a new Lab to the same state, bit for bit."""

from __future__ import annotations

from dataclasses import fields

from ..loop import Recipe, Run


def python_state(run: Run) -> str:
    """Return the line: the task, its start, every change of the loop at its update, and the updates between them.

    A task that is not one of gradlab's own is written as the name ``task``.
    """
    from .. import tasks

    (_, first), *later = run.loops
    name = repr(run.task.name) if run.task.name in tasks.names() else "task"
    recipe = first if isinstance(first, Recipe) else run.recipe
    line = f"Lab({name}, {_recipe(recipe)})"
    if isinstance(first, str):
        line += f".edit({first!r})"
    if run.start_weights is not None or isinstance(first, str):
        weights = "" if run.start_weights is None else f"weights={run.start_weights!r}"
        line += f".reset({weights})"
    done, now = 0, recipe
    for updates, loop in later:
        line += f".run({updates - done})" if updates > done else ""
        done = updates
        if isinstance(loop, str):
            line += f".edit({loop!r})"
            continue
        names = [f.name for f in fields(Recipe)]
        changes = {name: getattr(loop, name) for name in names if getattr(loop, name) != getattr(now, name)}
        line += f".switch({', '.join(f'{name}={value!r}' for name, value in changes.items())})"
        now = loop
    return line + (f".run({run.updates - done})" if run.updates > done else "")


def _recipe(recipe: Recipe) -> str:
    given = {f.name: getattr(recipe, f.name) for f in fields(Recipe) if getattr(recipe, f.name) != f.default}
    given["lr"] = recipe.lr
    return f"Recipe({', '.join(f'{name}={value!r}' for name, value in given.items())})"

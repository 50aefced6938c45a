"""A run's state as a line of Python that brings a new Lab to the same state, bit for bit."""

from __future__ import annotations

from dataclasses import fields

from ..loop import Recipe, Run


def python_state(run: Run, task: str) -> str:
    """Return the line: the task, its start, every change of the loop at its update, the updates between them, and the
    statements since; "" where the loop was changed so often that not every change is known.

    ``task`` is how the line names the task: ``'digits'`` with its quotes, or a name for one that the learner made.
    """
    if not run.all_loops_known:
        return ""
    (_, first), *later = run.loops
    recipe = first if isinstance(first, Recipe) else run.recipe
    line = f"Lab({task}, {_recipe(recipe)})"
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
        changes = {
            f.name: getattr(loop, f.name) for f in fields(Recipe) if getattr(loop, f.name) != getattr(now, f.name)
        }
        line += f".switch({', '.join(f'{name}={value!r}' for name, value in changes.items())})"
        now = loop
    line += f".run({run.updates - done})" if run.updates > done else ""
    begun = run.statements_since_update
    return line + (f".step({begun})" if begun > 1 else ".step()" if begun else "")


def _recipe(recipe: Recipe) -> str:
    given = {f.name: getattr(recipe, f.name) for f in fields(Recipe) if getattr(recipe, f.name) != f.default}
    given["lr"] = recipe.lr
    return f"Recipe({', '.join(f'{name}={value!r}' for name, value in given.items())})"

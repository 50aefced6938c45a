"""The comparison of several recipes on one task, as a figure and a table."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import tasks
from .._checks import whole_number
from .._process import progress_bar
from ..drawing import Drawing, draw_comparison, in_rows, themed_svg, to_svg
from ..formatting import html_table, svg_img
from ..loop import LoopError, Recipe, Run
from ..scenes import Curve, loss_curve

_MAX_RECIPES = 7  # one for each combination of colour and dashes
_HEAD = ("recipe", "first loss", "last loss", "lowest", "highest", "|grad|", "bytes", "diverged")
_FIGURE_SIZE_PX = 640, 340  # size of the figure in CSS pixels, which a notebook enlarges to a width of 760
_UPDATES_PER_REPORT = 20  # number of updates between two changes of the progress bar


@dataclass(frozen=True)
class Row:
    """The result of one recipe: losses, final gradient norm and memory, and the update at which the run diverged."""

    label: str
    first: float
    last: float
    lowest: float
    worst: float
    norm: float  # norm of the gradients that the last step applied
    bytes: int  # bytes of weights, gradients and optimizer state
    diverged: int | None  # the first update with a loss of inf or NaN, or None if there is none


@dataclass(frozen=True)
class Comparison:
    """The result of ``compare``, which a notebook shows as a figure of the losses with a table below it."""

    task: str
    updates: int
    rows: list[Row]
    curves: dict[str, Curve]
    drawing: Drawing = field(repr=False)

    @property
    def table(self) -> str:
        """The results as a table in plain text, with a heading and a line for each recipe."""
        columns = []
        for index, column in enumerate(zip(*self._lines(), strict=True)):
            width = max(map(len, column))
            columns.append([cell.ljust(width) if index in (0, 7) else cell.rjust(width) for cell in column])
        return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))

    def __repr__(self) -> str:
        return f"{self.task}, {self.updates:,} updates\n{self.table}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        names, *rows = self._lines()
        picture = svg_img(themed_svg(to_svg(in_rows([self.drawing], 1, _FIGURE_SIZE_PX))), repr(self), 760)
        table = html_table(names, [list(map(html.escape, row)) for row in rows], "white-space:nowrap")
        # A table wider than the screen can be scrolled by touch or with the arrow keys.
        keys = 'tabindex="0" data-lm-suppress-shortcuts="true"'  # otherwise JupyterLab handles the arrow keys
        box = f'<div style="overflow-x:auto" {keys} role="group" aria-label="{self.task}: table">{table}</div>'
        return {"text/plain": repr(self), "text/html": picture + box}

    def _lines(self) -> list[tuple[str, ...]]:
        lines: list[tuple[str, ...]] = [_HEAD]
        for row in self.rows:
            end = "no" if row.diverged is None else f"at update {row.diverged:,}"
            numbers = (f"{number:.3g}" for number in (row.first, row.last, row.lowest, row.worst, row.norm))
            lines.append((row.label, *numbers, f"{row.bytes:,}", end))
        return lines if any(row.diverged is not None for row in self.rows) else [line[:-1] for line in lines]


def compare(task: Any, recipes: Mapping[str, Recipe], updates: int = 100) -> Comparison:
    """Run each recipe for ``updates`` updates from the same weights, and return a Comparison: a figure and a table.

    ``task`` is a Task or its name, and ``recipes`` maps 1 to 7 labels to Recipes. If the runs take over a second, a bar
    shows their progress. Raises TypeError or ValueError for invalid arguments, and LoopError if a loop fails.
    """
    task = tasks.resolve(task, "compare")
    _check(recipes)
    updates = whole_number("compare: updates", updates, 1, kind=ValueError)
    rows, curves = [], {}
    with progress_bar(updates * len(recipes), "updates") as bar:
        for label, recipe in recipes.items():
            try:
                run = Run(task, recipe)
                run.advance(updates=1)
                first = run.record.loss
                bar.update(1)
                while run.updates < updates:
                    bar.update(run.advance(updates=min(_UPDATES_PER_REPORT, updates - run.updates)))
            except LoopError as error:
                raise LoopError(error.line, error.problem, error.text, owner=f"compare: {label!r}: ") from error
            rows.append(_row(label, first, run))
            curves[label] = loss_curve(run.record)
            run.close()
    reused = [label for label, recipe in recipes.items() if not recipe.zero_grad]
    return Comparison(task.name, updates, rows, curves, draw_comparison(curves, f"{task.name}: loss", reused=reused))


def _row(label: str, first: float, run: Run) -> Row:
    rows = run.record.rows
    low, high = ([value for value in rows[name] if math.isfinite(value)] or [math.nan] for name in ("low", "high"))
    worst = max(high) if run.record.broken is None else math.inf
    total = sum(run.footprint().values())
    return Row(label, first, run.record.loss, min(low), worst, run.record.norm, total, run.record.broken)


def _check(recipes: Any) -> None:
    if not isinstance(recipes, Mapping):
        raise TypeError(f"compare: recipes must be a mapping from labels to Recipes, got {recipes!r}")
    if not 1 <= len(recipes) <= _MAX_RECIPES:
        raise ValueError(f"compare: recipes must contain 1 to {_MAX_RECIPES} Recipes, got {len(recipes)}")
    for label, recipe in recipes.items():
        if not isinstance(label, str) or not label.strip():
            raise TypeError(f"compare: labels of recipes must be strings that are not blank, got {label!r}")
        if not isinstance(recipe, Recipe):
            raise TypeError(f"compare: recipes[{label!r}] must be a gradlab.Recipe, got {recipe!r}")

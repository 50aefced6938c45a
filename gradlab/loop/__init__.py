"""From a Recipe to training: Recipe -> text -> statements -> Run, and its History."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from .history import History as History
    from .program import LoopError as LoopError
    from .program import Program as Program
    from .program import Statement as Statement
    from .recipe import AMP as AMP
    from .recipe import LONGEST_WINDOW as LONGEST_WINDOW
    from .recipe import OPTIMIZERS as OPTIMIZERS
    from .recipe import Recipe as Recipe
    from .run import Run as Run

load_lazily(
    __name__,
    {
        "AMP": ".recipe",
        "History": ".history",
        "LONGEST_WINDOW": ".recipe",
        "LoopError": ".program",
        "OPTIMIZERS": ".recipe",
        "Program": ".program",
        "Recipe": ".recipe",
        "Run": ".run",
        "Statement": ".program",
    },
)

"""gradlab: see what happens to ``.grad``.

Public names load what they need when they are first used: ``import gradlab`` alone imports neither torch, matplotlib
nor ipywidgets.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import tasks as tasks
    from .comparison import compare as compare
    from .course.exercises import exercise as exercise
    from .doctor import watch as watch
    from .forecast import forecast as forecast
    from .ledger import Ledger as Ledger
    from .recipe import Recipe as Recipe
    from .run import Run as Run
    from .widgets.lab import Lab as Lab
    from .widgets.predict import predict as predict

_HOME = {
    "Lab": ".widgets.lab",
    "Ledger": ".ledger",
    "Recipe": ".recipe",
    "Run": ".run",
    "compare": ".comparison",
    "exercise": ".course.exercises",
    "forecast": ".forecast",
    "predict": ".widgets.predict",
    "watch": ".doctor",
}

__all__ = ["Lab", "Ledger", "Recipe", "Run", "compare", "exercise", "forecast", "predict", "tasks", "watch"]


def __getattr__(name: str) -> Any:
    if name == "tasks":
        return importlib.import_module(".tasks", __name__)
    if name not in _HOME:
        raise AttributeError(f"gradlab has no name {name!r}; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

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
    from .compare import compare as compare
    from .doctor import watch as watch
    from .exercises import exercise as exercise
    from .forecast import forecast as forecast
    from .memory import Ledger as Ledger
    from .loop import Recipe as Recipe
    from .loop import Run as Run
    from .widgets import Lab as Lab
    from .widgets import predict as predict

_HOME = {
    "Lab": ".widgets.lab",
    "Ledger": ".ledger",
    "Recipe": ".recipe",
    "Run": ".run",
    "compare": ".comparison",
    "exercise": ".exercises",
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

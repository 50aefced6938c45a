"""Forecast: how much memory a training loop needs, and whether it fits a GPU, before anything is allocated.

The GPUs and the published model sizes need no torch; the other names load it when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .gpus import GPUS, usable_bytes
from .model_sizes import ModelSize, model_size, model_sizes

if TYPE_CHECKING:
    from .errors import ForecastError
    from .estimate import Forecast, forecast, progress, report_progress_to

__all__ = [
    "GPUS",
    "Forecast",
    "ForecastError",
    "ModelSize",
    "forecast",
    "model_size",
    "model_sizes",
    "progress",
    "report_progress_to",
    "usable_bytes",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"gradlab.forecast has no name {name!r}; it has {', '.join(__all__)}")
    home = ".errors" if name == "ForecastError" else ".estimate"
    value = globals()[name] = getattr(importlib.import_module(home, __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

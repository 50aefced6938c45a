"""gradlab: interactive lessons on gradients, and tools that inspect training loops.

Public names are imported when first used, so ``import gradlab`` alone does not load torch, matplotlib or ipywidgets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._lazy import load_lazily

__version__ = "0.3.0"

if TYPE_CHECKING:
    from . import tasks as tasks
    from .course.exercises import exercise as exercise
    from .doctor import watch as watch
    from .forecasting import forecast as forecast
    from .loop import Recipe as Recipe
    from .loop import Run as Run
    from .memory import Ledger as Ledger
    from .widgets import Lab as Lab
    from .widgets import compare as compare
    from .widgets import predict as predict

load_lazily(__name__)


def check_torch() -> None:
    """Print a message if PyTorch is missing or too old for gradlab; print nothing otherwise."""
    from ._torch import complaint

    if wrong := complaint():
        print(wrong)


def load_ipython_extension(shell: Any) -> None:
    """Register the cell magic ``%%doctor``; IPython calls this function for ``%load_ext gradlab``."""
    from .doctor import add_doctor_magic

    add_doctor_magic(shell)

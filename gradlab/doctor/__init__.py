"""What is wrong with a training loop of the learner's own, and where."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._torch import require_torch

if TYPE_CHECKING:
    from .finding import Finding as Finding
    from .finding import Report as Report
    from .integrations import add_doctor_magic as add_doctor_magic
    from .reports import FindingFilter as FindingFilter
    from .reports import read_settings as read_settings
    from .runner import LiveDoctor as LiveDoctor
    from .script import run_script as run_script
    from .watching import watch as watch

_MODULES = {
    "Finding": "finding",
    "FindingFilter": "reports",
    "LiveDoctor": "runner",
    "Report": "finding",
    "add_doctor_magic": "integrations",
    "read_settings": "reports",
    "run_script": "script",
    "watch": "watching",
}
__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    """Load a public name, and PyTorch with it, when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"{__name__} has no name {name!r}; it has {', '.join(sorted(__all__))}")
    require_torch()
    value = globals()[name] = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    return value

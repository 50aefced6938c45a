"""What is wrong with a training loop of the learner's own, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from . import events as events
    from .finding import Finding as Finding
    from .finding import Report as Report
    from .graphs.autograd_graph import nodes as nodes
    from .integrations.cell_magic import add_doctor_magic as add_doctor_magic
    from .listeners.monkeypatch import Listener as Listener
    from .programs.script import run_script as run_script
    from .reports import FindingFilter as FindingFilter
    from .reports import read_settings as read_settings
    from .rules.runner import LiveDoctor as LiveDoctor
    from .watching import watch as watch

load_lazily(__name__)

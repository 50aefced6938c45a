"""The doctor, which finds bugs in a training loop and names the lines to edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from .finding import Finding as Finding
    from .finding import Report as Report
    from .integrations import add_doctor_magic as add_doctor_magic
    from .reports import FindingFilter as FindingFilter
    from .reports import read_settings as read_settings
    from .runner import LiveDoctor as LiveDoctor
    from .script import run_script as run_script
    from .watching import watch as watch

load_lazily(__name__)

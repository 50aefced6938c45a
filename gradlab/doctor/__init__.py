"""The doctor: the instruments on a loop of the learner's own."""

from __future__ import annotations

from .finding import Finding, Report
from .watching import watch

__all__ = ["Finding", "Report", "watch"]

"""What a listener is."""

from __future__ import annotations

from typing import Any

from ..event_log import EventLog
from ..monkeypatch import MonkeyPatches


class Listener:
    """Replaces some of PyTorch's functions by ones that also write down what happens."""

    def __init__(self, log: EventLog) -> None:
        """Write to ``log``."""
        self.log = log

    def patch(self, patches: MonkeyPatches) -> None:
        """Put the replacements in."""

    def hooks(self) -> list[Any]:
        """Register hooks, where PyTorch has some; return the handles that remove them."""
        return []

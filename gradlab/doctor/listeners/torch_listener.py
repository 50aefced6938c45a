"""Stands between the learner's loop and PyTorch, and writes down what happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..events import Event
from .backward import BackwardListener
from .clipping import ClipListener
from .event_log import EventLog
from .modules import ModuleListener
from .monkeypatch import Listener, MonkeyPatches, never_raises
from .optimizers import OptimizerListener
from .scaling import ScalerListener, SchedulerListener


class TorchListener:
    """All listeners on one log; ``start()`` and ``stop()`` replace PyTorch's names and put them back."""

    def __init__(self, judge: Callable[[list[Event]], None]) -> None:
        log = self.log = EventLog(judge)
        kinds = BackwardListener, ModuleListener, OptimizerListener, ClipListener, ScalerListener, SchedulerListener
        self._listeners: list[Listener] = [kind(log) for kind in kinds]
        self._patches = MonkeyPatches()
        self._handles: list[Any] = []

    def add(self, listener: Listener) -> None:
        """Have another one listen on the log, after those that write to it."""
        listener.log = self.log
        self.log.hearers.append(listener.heard)
        self._listeners.append(listener)

    def start(self) -> None:
        """Begin to listen, to the thread that calls this."""
        if not self.log.failure:
            self.log.thread.listen()
        for listener in self._listeners:
            listener.patch(self._patches)
        self._handles = [handle for listener in self._listeners for handle in listener.hooks()]

    def stop(self) -> None:
        """Put everything back, and hand on what is left."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._patches.undo()
        self.log.thread.ignore()
        self._finish()

    @never_raises
    def _finish(self) -> None:
        others = self.log.thread.others
        if not (others and others.runs_elsewhere()):  # it may be writing to a .grad just now
            self.log.detect_changes()
        self.log.flush()

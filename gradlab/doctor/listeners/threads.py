"""Which thread trains: the one that began the watch, or, as long as it trains nothing, another that it started."""

from __future__ import annotations

import threading
from weakref import WeakSet


class TrainingThreads:
    """The thread that is watched, and those that train beside it; threads that were there before do not count."""

    def __init__(self) -> None:
        self._first = self._watched = threading.current_thread()
        self._older = WeakSet(threading.enumerate())
        self._older.discard(self._first)
        self.beside: dict[int, str] = {}
        """Threads that trained and were not watched: number -> name."""

    @property
    def followed(self) -> str:
        """The name of the thread that is watched, "" if it is the one that began the watch."""
        return "" if self._watched is self._first else self._watched.name

    def follow(self, *, trained: bool) -> bool:
        """Return whether to watch the thread that calls this, which is about to train.

        One that is watched and has ``trained`` is left only when it has ended: threads may take turns.
        """
        thread = threading.current_thread()
        if thread in self._older:
            return False
        if not trained or not self._watched.is_alive():
            self._watched = thread
            return True
        self.note()
        return False

    def note(self) -> None:
        """Note that the thread that calls this trains and is not watched."""
        thread = threading.current_thread()
        if thread not in self._older:
            self.beside[threading.get_ident()] = thread.name

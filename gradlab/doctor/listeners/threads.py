"""Which thread trains: the one that began the watch, or, as long as it trains nothing, another that it started."""

from __future__ import annotations

import threading
from weakref import WeakSet

from ... import _torch


class WatchedThread:
    """The thread that is watched, and those that train beside it; older ones than the watch do not count."""

    def __init__(self) -> None:
        self.ident = 0
        """Python's number for it, 0 for none."""
        self.may_change = False
        """True if the watch may go over to another thread."""
        self.beside: dict[int, str] = {}
        """Threads that trained and were not watched: number -> name."""
        self._first = self._watched = threading.current_thread()
        self._older = WeakSet(threading.enumerate())
        self._older.discard(self._first)

    @property
    def followed(self) -> str:
        """The name of the thread that is watched, "" if it is the one that began the watch."""
        return "" if self._watched is self._first else self._watched.name

    def listen(self) -> None:
        """Take what the thread that calls this does from now on."""
        self.ident = threading.get_ident()

    def ignore(self) -> None:
        """Take nothing any more: whoever has kept one of our functions gets what it stands for."""
        self.ident = 0

    def is_here(self) -> bool:
        """Return whether this is the watching thread."""
        return threading.get_ident() == self.ident

    def runs_elsewhere(self) -> bool:
        """Return whether another thread is watched, and has not ended."""
        return self.may_change and self._watched is not threading.current_thread() and self._watched.is_alive()

    def may_go_over(self) -> bool:
        """Return whether the thread that calls this could be watched instead."""
        return bool(self.ident) and self.may_change and threading.current_thread() not in self._older

    def goes_over(self, *, trained: bool) -> bool:
        """Return whether the thread that calls this, which is about to train, is watched from now on.

        One that is watched and has ``trained`` is left only when it has ended: threads may take turns.
        """
        if self._trains_by_itself():
            if trained and self._watched.is_alive():
                self._note()
            else:
                self._watched = threading.current_thread()
                self.listen()
        return self.is_here()

    def steps_elsewhere(self) -> None:
        """Note a step on a thread that is not watched."""
        if self._trains_by_itself():
            self._note()

    def _trains_by_itself(self) -> bool:
        """Return whether the thread could be watched, and is none of autograd's that works for another."""
        return self.may_go_over() and _torch.current_graph_task() < 0

    def _note(self) -> None:
        self.beside[threading.get_ident()] = threading.current_thread().name

"""Which thread trains: the one that began the watch, or, as long as it trains nothing, another that it started."""

from __future__ import annotations

import threading
from weakref import WeakSet

from ... import _torch


class WatchedThread:
    """The thread that is watched."""

    def __init__(self) -> None:
        self.ident = 0
        """Python's number for it, 0 for none."""
        self.others: OtherThreads | None = None
        """Set where the watch may go over to another thread."""

    def listen(self) -> None:
        """Take what the thread that calls this does from now on."""
        self.ident = threading.get_ident()

    def ignore(self) -> None:
        """Take nothing any more: whoever has kept one of our functions gets what it stands for."""
        self.ident = 0

    def is_here(self) -> bool:
        """Is this the watching thread?"""
        return threading.get_ident() == self.ident

    def goes_over(self, *, trained: bool) -> bool:
        """Another thread is about to train: return whether it is watched from now on."""
        if self.others and self.ident and _torch.current_graph_task() < 0 and self.others.follow(trained=trained):
            self.listen()
        return self.is_here()

    def may_go_over(self) -> bool:
        """Could the thread that calls this be watched instead?"""
        return bool(self.ident and self.others and not self.others.is_older())

    def steps_elsewhere(self) -> None:
        """Note a step on a thread that is not watched."""
        if self.others and self.ident and _torch.current_graph_task() < 0:
            self.others.note()


class OtherThreads:
    """The threads that could be watched instead, and those that train beside; older ones do not count."""

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

    def is_older(self) -> bool:
        """Return whether the thread that calls this ran before the watch began."""
        return threading.current_thread() in self._older

    def runs_elsewhere(self) -> bool:
        """Return whether another thread is watched, and has not ended."""
        return self._watched is not threading.current_thread() and self._watched.is_alive()

    def follow(self, *, trained: bool) -> bool:
        """Return whether to watch the thread that calls this, which is about to train.

        One that is watched and has ``trained`` is left only when it has ended: threads may take turns.
        """
        thread = threading.current_thread()
        if self.is_older():
            return False
        if not trained or not self._watched.is_alive():
            self._watched = thread
            return True
        self.note()
        return False

    def note(self) -> None:
        """Note that the thread that calls this trains and is not watched."""
        thread = threading.current_thread()
        if not self.is_older():
            self.beside[threading.get_ident()] = thread.name

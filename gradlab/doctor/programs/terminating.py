"""SIGTERM as an exception, so that there is time for a report."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SAME = 5.0  # seconds in which a second signal is taken for the first: it is sent to a process and to its group


class TerminatedError(SystemExit):
    """SIGTERM has arrived."""


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Raise TerminatedError at SIGTERM, unless the program or the one that started it has other plans for it."""
    process, first = os.getpid(), 0.0

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if os.getpid() != process:  # a child that was forked ends as it would
            die_of_sigterm()
        elif not first:
            first = time.monotonic()
            raise TerminatedError(128 + number)
        elif time.monotonic() - first > _SAME:
            die_of_sigterm()

    before = signal.getsignal(signal.SIGTERM)
    ours = getattr(before, "__module__", "") == __name__  # a forked child has its parent's
    if threading.current_thread() is not threading.main_thread() or not (ours or before is signal.SIG_DFL):
        yield
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is end:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def die_of_sigterm() -> None:
    """End as a process ends that does nothing about SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)

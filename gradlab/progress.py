"""A progress bar that shows up only when there is something to wait for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_TOLD: ContextVar[Callable[[int, int], None] | None] = ContextVar("told", default=None)


@contextmanager
def telling(told: Callable[[int, int], None]) -> Iterator[None]:
    """Have ``told(calls, expected)`` called as a forecast goes on, in the place of a bar: for a widget with its own."""
    token = _TOLD.set(told)
    try:
        yield
    finally:
        _TOLD.reset(token)


class Progress:
    """A progress bar that shows up when a forecast takes longer than a second, and goes away with it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._began = time.monotonic()
        self._bar: Any = None

    def __call__(self, calls: int, expected: int) -> None:
        """Move on: ``calls`` of about ``expected`` operations are done."""
        if (told := _TOLD.get()) is not None:
            told(calls, expected)
            return
        if self._bar is None and time.monotonic() - self._began > 1.0:
            self._bar = _tqdm()(total=expected, desc=f"forecast {self._name}", leave=False, unit=" operations")
        if self._bar is not None:
            self._bar.update(min(calls, expected) - self._bar.n)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _tqdm() -> Any:
    from tqdm.auto import tqdm

    class Quiet(tqdm):
        monitor_interval = 0  # no thread that watches the bar

    return Quiet

"""The invariant of every Ledger's numbers, looked at whenever one of them changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradlab.memory.timeline import CategoryTotals


def look_at_every_change(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Check all moments that are kept after every change of any totals; return a list that grows with each look."""
    looks: list[int] = []

    def checked(method: Callable[..., Any]) -> Callable[..., Any]:
        def change(totals: CategoryTotals, *args: Any, **kwargs: Any) -> Any:
            result = method(totals, *args, **kwargs)
            check(totals)
            looks.append(1)
            return result

        return change

    for name in ("change", "move", "correct", "begin_interval", "forget"):
        monkeypatch.setattr(CategoryTotals, name, checked(getattr(CategoryTotals, name)))
    return looks


def check(totals: CategoryTotals) -> None:
    """No category is negative at any moment, and the categories are all that there was."""
    assert min(totals.now) >= 0, totals.now
    assert sum(totals.now) == totals.total
    for interval in (*totals._past, totals._interval):
        assert min(interval.high) >= 0, (interval.statement, interval.high)
        assert min(interval.end) >= 0, (interval.statement, interval.end)
        assert sum(interval.high) == interval.top
        assert interval.top <= totals.peak
    assert min(totals.peak_at.high.values()) >= 0, totals.peak_at
    assert totals.peak_at.top == totals.peak

"""An interrupt between two messages ends whatever heeds it, however many labs there are; the kernel is a stand-in."""

from __future__ import annotations

import signal
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from gradlab.front import on_interrupt


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What ipykernel keeps: the handler that is set when no message is handled."""
    kernel = SimpleNamespace(saved_sigint_handler=signal.SIG_IGN)
    shell = SimpleNamespace(kernel=kernel)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr("gradlab.front.widget._heeding", set())  # labs of other tests may still be played
    return kernel


def test_one_of_two_that_ends_leaves_the_other_heeding(kernel: Any) -> None:
    ended: list[str] = []

    def one() -> None:
        ended.append("one")

    def other() -> None:
        ended.append("other")

    for act in (one, other):
        on_interrupt(act, heed=True)
    kernel.saved_sigint_handler(signal.SIGINT, None)
    assert sorted(ended) == ["one", "other"]
    on_interrupt(one, heed=False)
    kernel.saved_sigint_handler(signal.SIGINT, None)
    assert ended[2:] == ["other"]
    on_interrupt(other, heed=False)
    assert kernel.saved_sigint_handler is signal.SIG_IGN


def test_without_a_kernel_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    before = signal.getsignal(signal.SIGINT)
    on_interrupt(print, heed=True)
    on_interrupt(print, heed=False)
    assert signal.getsignal(signal.SIGINT) is before

"""Which lines made the nodes of a graph: autograd's own record of them, switched on for single updates."""

from __future__ import annotations

import re
from typing import Any

import torch

from ..callsite import Owner, code_owner
from ..events import Site

_FRAME = re.compile(r'\s*File "(.+?)", line (\d+)')
_TRACEBACK = "traceback_"
_MOST_PASSES = 16  # backward passes of other lines before the wait ends
_MOST_TRIES = 3


class OpTracer:
    """Has autograd note the lines that make each node, from one backward pass to the next of the same call path."""

    def __init__(self) -> None:
        """Start with nothing to wait for."""
        self._waiting: dict[int, int] = {}  # call path -> passes until the wait ends
        self._tries: dict[int, int] = {}
        self._on = False

    def ask(self, call_path: int) -> None:
        """Record the update that leads to the next backward pass of this call path."""
        if self._tries.setdefault(call_path, 0) < _MOST_TRIES:
            self._tries[call_path] += 1
            self._waiting[call_path] = _MOST_PASSES

    def pass_begins(self, call_path: int) -> bool:
        """Stop recording while a backward pass runs; return whether this is one that was asked for."""
        if not self._waiting:
            return False
        was_on = self._on
        self.remove()
        if call_path in self._waiting:
            if was_on:
                del self._waiting[call_path]
            return was_on
        self._waiting = {path: left - 1 for path, left in self._waiting.items() if left > 1}
        return False

    def pass_ended(self) -> None:
        """Record again, if a call path waits for it."""
        if self._waiting and not torch.is_anomaly_enabled():
            torch.autograd.set_detect_anomaly(True, check_nan=False)
            self._on = True

    def remove(self) -> None:
        """Switch the record off, if it was this object that switched it on.

        With a check of NaN, it is the learner's own by now, inside ``detect_anomaly()``: it stays, and is switched off
        at the next call, after that block has put back what it found.
        """
        if self._on and not (torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()):
            torch.autograd.set_detect_anomaly(False)
            self._on = False


def made_by(node: Any) -> tuple[Site, ...]:
    """Return the learner's lines that made a node, caller by caller; empty if they were not recorded."""
    found: list[Site] = []
    for frame in node.metadata.get(_TRACEBACK, ()):
        if (match := _FRAME.match(frame)) and code_owner(match[1]) is Owner.USER:
            found.append((match[1], int(match[2])))
    return tuple(found)

"""Graphs that nothing needs: which variable holds those of past updates, and which were built for nothing."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

from torch import Tensor, nn

from ..._frames import Owner, code_owner, user_frame, variables
from ..events import NO_SITE, Site
from ..source.carried import adds_to
from .autograd_graph import Token, old_roots

_NEWEST = 12  # elements of a container that are looked at


def find_graph_holder(frame: FrameType | None, now: int) -> Site:
    """Find the line that keeps old graphs alive, from a frame outwards; ``now`` is the number of the backward pass."""
    frame = user_frame(frame)
    while frame is not None:
        file = frame.f_code.co_filename
        for name, value in variables(frame).items():
            for kept in _keeping(name, value, now):
                if line := adds_to(file, kept, frame.f_lineno):
                    return file, line
        frame = user_frame(frame.f_back)
    return NO_SITE


def _keeping(name: str, value: Any, now: int) -> Iterator[str]:
    """Yield the names, of a variable or of an attribute of its object, under which old graphs are held."""
    if _old_graphs_in(value, now) > 0:
        yield name
    elif hasattr(value, "__dict__") and not isinstance(value, (Tensor, nn.Module, type)) and _own(value):
        for attribute, part in list(vars(value).items()):
            if _old_graphs_in(part, now) > 0:
                yield attribute


def _own(value: Any) -> bool:
    """Is this an object of a class of the learner's?"""
    code = getattr(getattr(type(value), "__init__", None), "__code__", None)
    return code is not None and code_owner(code.co_filename) is Owner.USER


def _old_graphs_in(value: Any, now: int, depth: int = 3) -> int:
    """Return how many old graphs a tensor, or a container of them, holds."""
    if isinstance(value, Tensor):
        return old_roots(value.grad_fn, now) if value.grad_fn is not None else 0
    if depth == 0:
        return 0
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple, deque)):
        # The oldest are looked at, too: a graph that has just been made is no leak.
        some = [*list(value)[:_NEWEST], *list(value)[-_NEWEST:]]
        return sum(_old_graphs_in(one, now, depth - 1) for one in some)
    return 0


_KEY = "gradlab.evaluated"
_MOST_WAITING, _MOST_LINES = 32, 64


class UnusedGraphs:
    """Counts them for each line of the learner's."""

    def __init__(self) -> None:
        self._waiting: list[tuple[weakref.ref[Token], Site, int]] = []
        self.uses = 0
        """How often something went back through a graph, ``autograd.grad`` included."""
        self.lines: dict[Site, tuple[int, int]] = {}
        """Line -> how many of its graphs nothing has used, and the parameters of its model."""

    def built(self, result: Any, site: Site, params: int) -> None:
        """Follow the graph of what a model returns, from a call in evaluation mode."""
        self._sweep()
        parts = (
            result.values() if isinstance(result, dict) else result if isinstance(result, (list, tuple)) else [result]
        )
        node: Any = next((one.grad_fn for one in parts if isinstance(one, Tensor) and one.grad_fn is not None), None)
        if node is not None:
            node.metadata[_KEY] = token = Token()
            self._waiting = [*self._waiting[-_MOST_WAITING:], (weakref.ref(token), site, params)]

    def settle(self) -> None:
        """Something goes back through a graph, or the watch ends: whichever of them lives may be the one."""
        self.uses += 1
        if self._waiting:
            self._sweep()
            self._waiting.clear()

    def _sweep(self) -> None:
        living = []
        for one in self._waiting:
            reference, site, params = one
            if reference() is not None:
                living.append(one)
            elif site in self.lines or len(self.lines) < _MOST_LINES:
                self.lines[site] = self.lines.get(site, (0, 0))[0] + 1, params
        self._waiting = living

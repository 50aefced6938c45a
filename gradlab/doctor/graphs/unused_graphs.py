"""Graphs that calls in evaluation mode have built, and that are gone before anything went back through a graph."""

from __future__ import annotations

import weakref
from typing import Any

from torch import Tensor

from ..events import Site
from .autograd_graph import Token

_KEY = "gradlab.evaluated"
_MOST_WAITING, _MOST_LINES = 32, 64


class UnusedGraphs:
    """Counts them for each line of the learner's."""

    def __init__(self) -> None:
        """Start with none."""
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
            node.metadata[_KEY] = token = Token(0)
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

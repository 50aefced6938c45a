"""Graphs that live too long, retained and growing or kept by a variable; and writes that autograd does not see."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..events import NO_SITE
from ..finding import Cause, Code
from ..graphs.autograd_graph import LOOK_EVERY
from .base import Rule, RuleContext

_FEW = 6
_LOOKS, _LOOKS_UNEXPLAINED = 3, 5
"""How often in a row more graphs have to be alive: with a line that keeps them, and without one (it may be a cache)."""


class CarriedGraph(Rule):
    """The graph grows from update to update, or the graphs of past updates stay alive."""

    RETAIN_GRAPH_GROWTH = Code("retain-graph-growth", "01_autograd", "What is freed")
    GRAPH_RETAINED_MEMORY_LEAK = Code("graph-retained-memory-leak", "10_loop_doctor", "Fine, until it is killed")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._nodes: dict[Any, list[tuple[int, int]]] = {}
        self._kept: list[Any] = []

    def backward(self, backward: Any) -> None:
        """Look at the counts that the listener has taken now and then."""
        if backward.nodes:
            counts = self._nodes.setdefault(backward.site, [])
            counts.append((backward.number, backward.nodes))
            del counts[:-16]
            self._growing(backward.site, counts)
        if backward.number % LOOK_EVERY == 0:
            self._kept.append(backward)
            del self._kept[:-_LOOKS_UNEXPLAINED]
            self._leaking()

    def _growing(self, site: Any, counts: list[tuple[int, int]]) -> None:
        sizes = [size for _, size in counts]
        rising = all(later > earlier for earlier, later in zip(sizes[-5:], sizes[-4:], strict=False))
        if len(sizes) >= 5 and rising and sizes[-1] >= 2 * sizes[-5] - sizes[-5] // 2:
            (first, few), (last, many) = counts[0], counts[-1]
            self.report_as(
                self.RETAIN_GRAPH_GROWTH,
                "error",
                site,
                "Each backward() goes back through all earlier batches: retain_graph=True keeps their graphs, and a "
                "state that is carried along is never detached.",
                f"the graph had {few} nodes at batch {first} and {many} at batch {last}",
                "state = state.detach()  # after each batch, and no retain_graph=True",
                Cause(*site),
            )

    def _leaking(self) -> None:
        newest = self._kept[-1]
        known = next((one.holder for one in reversed(self._kept[-_LOOKS:]) if one.holder != NO_SITE), NO_SITE)
        looks = _LOOKS if known != NO_SITE else _LOOKS_UNEXPLAINED
        counts = [one.alive for one in self._kept[-looks:]]
        more = len(counts) == looks and all(few < many for few, many in pairwise(counts)) and counts[-1] >= _FEW
        if not more or self.context.has_finding(self.RETAIN_GRAPH_GROWTH):
            return  # as many as ever: what an update needs of the one before
        self.report_as(
            self.GRAPH_RETAINED_MEMORY_LEAK,
            "error" if known != NO_SITE else "warning",
            known if known != NO_SITE else newest.site,
            "The graphs of past updates are kept alive: a loss is stored or summed with its graph attached.",
            f"at batch {newest.number} the graphs of at least {newest.alive} earlier losses were still there",
            "total += loss.item()  # or losses.append(loss.detach())",
        )

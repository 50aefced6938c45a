"""Graphs that grow from update to update, or live too long."""

from __future__ import annotations

from collections import defaultdict, deque
from functools import partial
from itertools import pairwise
from typing import Any

from ..finding import Cause, Code
from ..graphs.autograd_graph import LOOK_EVERY
from ..source.carried import without_graph
from .base import Rule

_LOOKS = 5  # in a row, at each of which more graphs have to be alive: a cache of the last ones stops growing
_FEW_GRAPHS, _FEW_BATCHES = 6, 3


class CarriedGraph(Rule):
    """The graph grows from update to update, or the graphs of past updates stay alive in a variable."""

    wakes_on = frozenset(("pass",))
    RETAIN_GRAPH_GROWTH = Code(
        "retain-graph-growth",
        "01_autograd",
        "What is freed",
        message="Each backward() goes back through all earlier batches: retain_graph=True keeps their graphs, and what "
        "is carried from batch to batch is never detached.",
        fix="Detach what is carried from one batch to the next, and call backward() without retain_graph=True.",
    )
    GRAPH_RETAINED_MEMORY_LEAK = Code(
        "graph-retained-memory-leak",
        "10_loop_doctor",
        "Fine, until it is killed",
        message="`{name}` keeps the graphs of past batches alive: what is added to it still has its graph, so memory "
        "grows with every batch.",
        fix="Store what is added to `{name}` without its graph: detach() it, or take the number with item().",
    )
    STATE_WITH_GRAPH = GRAPH_RETAINED_MEMORY_LEAK.with_(
        severity="hint",
        message="`{name}` carries its graph from batch to batch: memory grows until it starts anew.",
        fix="Detach `{name}` between two batches if no gradient goes back through earlier ones.",
    )

    KEPT_BY_HOOK = GRAPH_RETAINED_MEMORY_LEAK.with_(
        message="A forward hook keeps outputs with their graphs in `{name}`: memory grows with every batch.",
        fix="Store output.detach(), and remove the hook with handle.remove() when it has done its work.",
    )

    def _begin(self) -> None:
        self._nodes: defaultdict[Any, deque[tuple[int, int]]] = defaultdict(lambda: deque(maxlen=16))
        self._hooked: deque[int] = deque(maxlen=_LOOKS)  # how many outputs hooks have kept
        self._kept: deque[Any] = deque(maxlen=_LOOKS)

    def backward(self, backward: Any) -> None:
        """Look at the counts that the listener has taken now and then."""
        if backward.nodes:
            self._nodes[backward.site].append((backward.number, backward.nodes))
            self._growing(backward.site)
        if backward.number % LOOK_EVERY == 0:
            self._kept.append(backward)
            self._leaking(backward)

    def _growing(self, site: Any) -> None:
        counts = self._nodes[site]
        sizes = [size for _, size in counts]
        rising = all(later > earlier for earlier, later in pairwise(sizes[-5:]))
        if len(sizes) >= 5 and rising and sizes[-1] >= 2 * sizes[-5] - sizes[-5] // 2:
            (first, few), (last, many) = counts[0], counts[-1]
            seen = f"the graph had {few} nodes at batch {first} and {many} at batch {last}"
            self.report(self.RETAIN_GRAPH_GROWTH, site, seen, Cause(*site))

    def _leaking(self, newest: Any) -> None:
        holder, counts = newest.holder, [one.alive for one in self._kept]
        if holder is not None and holder.hook:
            self._hooked.append(holder.batches)
            if len(self._hooked) == _LOOKS and all(few < many for few, many in pairwise(self._hooked)):
                seen = f"at batch {newest.number} it held {holder.batches} outputs, and {self._hooked[0]} some batches before"
                self.report(self.KEPT_BY_HOOK, holder.site, seen, Cause(*holder.site), name=holder.name)
            return
        if holder is None or holder.batches < _FEW_BATCHES or self.context.has_finding(self.RETAIN_GRAPH_GROWTH):
            return
        if len(counts) < _LOOKS or counts[-1] < _FEW_GRAPHS or not all(few < many for few, many in pairwise(counts)):
            return  # as many as ever: what an update needs of the one before
        seen = f"at batch {newest.number} `{holder.name}` held graphs of at least {holder.batches} earlier batches"
        if holder.carried:
            self.report(self.STATE_WITH_GRAPH, holder.site, seen, name=holder.name)
        else:
            edit = partial(without_graph, holder)
            self.report(self.GRAPH_RETAINED_MEMORY_LEAK, holder.site, seen, edit, name=holder.name)

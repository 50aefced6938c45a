"""Backward passes: what they add to, and what their graphs tell."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor, nn

from .. import graphs
from ..clerk import Clerk
from ..events import BY_HAND, NOWHERE, Added, Backward, Made, Site, Step
from ..keeping import keeper
from ..lines import updates_by_hand
from ..patches import carefully
from ..sites import route, site

_MOST_ROUTES = 512


class Backwards(Clerk):
    """Listens to ``backward()``, however it is called."""

    def _make_grads(self, original: Any) -> Any:
        def make_grads(outputs: Any, grads: Any, *args: Any, **kwargs: Any) -> Any:
            self._given = any(grad is not None for grad in grads)
            return original(outputs, grads, *args, **kwargs)

        return make_grads

    def _run_backward(self, original: Any) -> Any:
        def run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if not kwargs.get("accumulate_grad") or self._current is not None or not self._mine():
                return original(outputs, *args, **kwargs)
            backward = self._begin(outputs, args)
            try:
                return original(outputs, *args, **kwargs)
            except RuntimeError:
                self._failed(backward, outputs)
                raise
            finally:
                self._ended(backward)

        return run_backward

    @carefully
    def _failed(self, backward: Backward, outputs: Any) -> None:
        backward.carried = self._last_update >= backward.previous >= 0 and any(
            graphs.older(one.grad_fn, backward.previous) for one in outputs if isinstance(one, Tensor)
        )

    @carefully
    def _ended(self, backward: Backward) -> None:
        _, _, changed = self.pages.look()
        self._full |= changed
        norms = None
        if changed and (self._looks_after or self.doubts & changed):
            self._looks_after = max(0, self._looks_after - 1)
            norms = self.pages.norms(changed)
        self._emit(Added(backward, changed, norms))
        self._current, self._replaced = None, []
        self._rest()

    @carefully
    def _begin(self, outputs: Any, args: Any) -> Backward:
        self._backwards += 1
        present, where = self._scan(), site(3)
        if not self.optimizers:
            self._moved_by_hand(present, where)
        backward = Backward(self._backwards, where, route(sys._getframe(2)), present)
        retain, backward.create, inputs = args[1], args[2], args[3]
        backward.retain, backward.given = bool(retain) and not backward.create, self._given or bool(inputs)
        if self._stepping:
            self._stepping[-1].closure = True
            backward.inside = self._stepping[-1].optimizer
        backward.previous = self._begun.get(backward.route, -1)
        if len(self._begun) >= _MOST_ROUTES:
            self._begun.clear()
        self._begun[backward.route] = torch._C._autograd._get_sequence_nr()
        root = outputs[0] if isinstance(outputs[0], Tensor) else None
        node = None if root is None else root.grad_fn
        if root is not None and node is not None:
            backward.autocast = graphs.enabled_autocast(root)
            backward.mean = len(outputs) == 1 and graphs.mean(node)
            backward.scaled = self._scaling and graphs.scaled(node)
            self._look_at_graph(backward, node)
        if backward.create:  # puts new tensors into .grad: while the old ones live, no new one can pass for one of them
            self._replaced = self.pages.grads(backward.found)
        if backward.found and (self._looks or self.suspects & backward.found):
            self._looks = max(0, self._looks - 1)
            backward.values = (backward.found, self.pages.norms(backward.found))
        self.newest = self._current = backward
        self._emit(backward)
        return backward

    def _moved_by_hand(self, present: int, where: Site) -> None:
        """The learner's own lines may step: weights have moved, and their gradients are still there."""
        moved = self.pages.stirred() & present
        if moved:
            self._updated()
            self._emit(Made(NOWHERE, BY_HAND, "your own update", moved, own=True))
            self._emit(Step(updates_by_hand(where), BY_HAND, moved, moved))

    def _look_at_graph(self, backward: Backward, node: Any) -> None:
        number = backward.number
        if number in (1, 2, 8) or number % 512 == 0:  # parameters that no module and no optimizer has told of
            leaves = graphs.leaves(node)
            self.pages.of(leaf for leaf, _ in leaves if isinstance(leaf, nn.Parameter) or not self.optimizers)
            self.models.reach(node)
        if backward.retain:
            self._retained += 1
            if self._retained <= 16 or self._retained & (self._retained - 1) == 0:
                backward.nodes = sum(1 for _ in graphs.nodes(node))
        if number % graphs.LOOK == 0:
            backward.alive = max(self._losses.alive(number), self._outputs.alive(number))
            if backward.alive >= 6:
                backward.keeper = keeper(sys._getframe(4), number)
        self._losses.add(node, number)

"""Backward passes: what they add to, and what their graphs tell."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from torch import Tensor, nn

from ... import _torch
from ..events import MANUAL_UPDATE, NO_SITE, Added, Backward, OptimizerMade, Site, Step
from ..frames import site_and_path
from ..graphs import autograd_graph
from ..graphs.graph_leaks import find_graph_holder
from ..graphs.loss_watcher import LossWatcher
from ..source.grad_lines import updates_by_hand
from .event_log import EventLog
from .monkeypatch import Below, Listener, MonkeyPatches, never_raises

_MOST_CALL_PATHS = 512
_MOST_INPUT_CHECKS = 256  # backward passes: until then, graphs are looked through for inputs
_VALUE_CHECKS = 12  # how often gradients that were there when a backward began are looked at
_VALUE_CHECKS_AFTER = 24  # and those that a backward has left: twice as many, for windows of two or more


class BackwardListener(Listener):
    """Listens to ``backward()``, however it is called."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self._losses = autograd_graph.Roots()
        self._watcher = LossWatcher()
        self._retained = 0
        self._given = False
        self._checks, self._checks_after = _VALUE_CHECKS, _VALUE_CHECKS_AFTER
        self._input_checks: Counter[int] = Counter()
        self._inputs: dict[int, int] = {}  # call path -> inputs that its passes give a gradient to
        self._began_at: dict[int, int] = {}  # call path -> autograd's number when its last pass began

    def hooks(self) -> list[Any]:
        """Have autograd's record of lines switched off at the end."""
        return [self._watcher.tracer]

    def patch(self, patches: MonkeyPatches) -> None:
        """Replace what every kind of backward goes through."""
        patches.replace(*_torch.place("engine_run_backward"), self._run_backward)
        patches.replace(*_torch.place("make_grads"), self._make_grads)

    def _make_grads(self, below: Below) -> Any:
        def make_grads(outputs: Any, grads: Any, *args: Any, **kwargs: Any) -> Any:
            self._given = any(grad is not None for grad in grads)
            return below.call(outputs, grads, *args, **kwargs)

        return make_grads

    def _run_backward(self, below: Below) -> Any:
        log = self.log

        def run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            log.unused_graphs.settle()
            if not kwargs.get("accumulate_grad"):
                log.grad_calls += 1
                return below.call(outputs, *args, **kwargs)
            if not log.begins_pass():
                return below.call(outputs, *args, **kwargs)
            backward = self._begin(outputs, args)
            try:
                return below.call(outputs, *args, **kwargs)
            except RuntimeError:
                self._failed(backward, outputs)
                raise
            finally:
                self._ended(backward)

        return run_backward

    @never_raises
    def _failed(self, backward: Backward, outputs: Any) -> None:
        backward.carried = self.log.last_update >= backward.previous >= 0 and any(
            autograd_graph.older(one.grad_fn, backward.previous) for one in outputs if isinstance(one, Tensor)
        )

    @never_raises
    def _ended(self, backward: Backward) -> None:
        log = self.log
        _, _, changed = log.index.changes()
        log.with_new_grad |= changed
        norms = None
        if changed and (self._checks_after or log.wanted_values_after & changed):
            self._checks_after = max(0, self._checks_after - 1)
            norms = log.index.norms(changed)
        log.emit(Added(backward, changed, norms))
        log.current, log.replaced, log.roots = None, [], ()
        self._watcher.tracer.pass_ended()
        log.flush_if_due()

    @never_raises
    def _begin(self, outputs: Any, args: Any) -> Backward:
        log = self.log
        log.backwards += 1
        present = log.detect_changes()
        site, path = site_and_path(sys._getframe(2))
        log.note_callers(site)
        if not log.optimizers:
            self._moved_by_hand(present, site)
        backward = Backward(log.backwards, site, path, present)
        retain, backward.create, inputs = args[1], args[2], args[3]
        backward.retain, backward.given = bool(retain) and not backward.create, self._given or bool(inputs)
        if log.stepping:
            log.stepping[-1].closure = True
            backward.inside = log.stepping[-1].optimizer
        backward.previous = self._began_at.get(backward.call_path, -1)
        if len(self._began_at) >= _MOST_CALL_PATHS:
            self._began_at.clear()
        self._began_at[backward.call_path] = _torch.sequence_number()
        backward.moved = log.weight_marks.moved(inside=bool(present & log.with_new_grad))
        root = outputs[0] if isinstance(outputs[0], Tensor) else None
        node = None if root is None else root.grad_fn
        if root is not None and node is not None:
            backward.autocast = autograd_graph.enabled_autocast(root)
            backward.mean = len(outputs) == 1 and autograd_graph.mean(node)
            backward.weighted = autograd_graph.weighted(node)
            backward.scaled = log.scaling and autograd_graph.scaled(node)
            self._watcher.look(backward, root, node, sys._getframe(2))
            log.compiled = self._watcher.compiled
            self._look_at_graph(backward, node)
        if backward.create:  # puts new tensors into .grad: while the old ones live, no new one can pass for one of them
            log.replaced = log.index.grads(backward.found)
        if backward.found and (self._checks or log.wanted_values & backward.found):
            self._checks = max(0, self._checks - 1)
            backward.values = (backward.found, log.index.norms(backward.found))
        log.newest = log.current = backward
        log.roots = tuple(outputs)
        log.emit(backward)
        return backward

    def _moved_by_hand(self, present: int, site: Site) -> None:
        """The learner's own lines may step: weights have moved, and their gradients are still there."""
        moved = self.log.index.weights_changed() & present
        if moved:
            self.log.note_update()
            self.log.steps += 1
            self.log.emit(OptimizerMade(NO_SITE, MANUAL_UPDATE, "your own update", moved, own=True))
            self.log.emit(Step(updates_by_hand(site), MANUAL_UPDATE, moved, moved))

    def _look_at_graph(self, backward: Backward, node: Any) -> None:
        number, log = backward.number, self.log
        if number in (1, 2, 8) or number % 512 == 0:  # parameters that no module and no optimizer has told of
            leaves = autograd_graph.leaves(node)
            log.index.bits(leaf for leaf, _ in leaves if isinstance(leaf, nn.Parameter) or not log.optimizers)
            log.models.note_depths(node)
            log.find_names(sys._getframe(4), params=log.index.known_bits(leaf for leaf, _ in leaves))
            if not log.optimizers:
                log.index.weights_changed()  # what was found just now is compared from here on
        if log.optimizers and number <= _MOST_INPUT_CHECKS and self._input_checks[backward.call_path] < 3:
            self._input_checks[backward.call_path] += 1
            self._inputs[backward.call_path] = sum(
                not isinstance(leaf, nn.Parameter) and not log.index.known_bits([leaf])
                for leaf, _ in autograd_graph.leaves(node)
            )
        backward.inputs = self._inputs.get(backward.call_path, 0)
        if backward.retain:
            self._retained += 1
            if self._retained <= 16 or self._retained & (self._retained - 1) == 0:
                backward.nodes = sum(1 for _ in autograd_graph.nodes(node))
        if number % autograd_graph.LOOK_EVERY == 0:
            backward.alive = max(self._losses.alive(number), log.outputs.alive(number))
            if backward.alive >= 6:
                backward.holder = find_graph_holder(sys._getframe(4), number)
        self._losses.add(node, number)

"""The listener for backward passes, the gradients that they change, and their graphs."""

from __future__ import annotations

import sys
import threading
from typing import Any

from torch import Tensor, nn

from ... import _torch
from ..._process import Original, Patches
from ..events import MANUAL_UPDATE, NO_SITE, Added, Backward, OptimizerMade, Site, Step
from ..frames import site_and_path
from ..graphs import autograd_graph
from ..graphs.graph_leaks import find_graph_holder, find_hook_holder
from ..graphs.loss_graph import LossWatcher
from ..graphs.op_trace import ops_below
from ..source.calls import updates_by_hand
from .event_log import EventLog, Listener, never_raises

_MOST_CALL_PATHS = 512
_VALUE_CHECKS = 12  # number of passes before which the existing gradients are read
_VALUE_CHECKS_AFTER = 24  # number of passes after which the gradients are read, enough for accumulation


class BackwardListener(Listener):
    """Emits events for all backward passes, however they are started, and for updates without an optimizer."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self._losses = autograd_graph.Roots()
        self._watcher = LossWatcher(log.trace)
        self._retained = 0
        self._steps = -1  # number of steps, of any optimizer, when the last pass began
        self._call = threading.local()  # has_grads: whether this thread's last backward() received gradients
        self._checks, self._checks_after = _VALUE_CHECKS, _VALUE_CHECKS_AFTER
        self._began: dict[int, int] = {}  # autograd's sequence number when each call path's last pass began

    def hooks(self) -> list[Any]:
        """Return a list with the trace as a handle, and start the trace now if the next update is to be traced."""
        if not self.log.passes.count or self.log.trace.waits:
            self.log.trace.start()
        return [self.log.trace]

    def patch(self, patches: Patches) -> None:
        """Replace ``Tensor.backward`` and the functions of autograd that every backward pass calls."""
        patches.replace(*_torch.locate("engine_run_backward"), self._run_backward)
        patches.replace(*_torch.locate("make_grads"), self.around(self._note_grads, anywhere=True))
        patches.replace(Tensor, "backward", self.around(self._before_backward))

    def _before_backward(self, *args: Any, **kwargs: Any) -> None:
        if self.log.thread.is_here():
            self.log.trace.before_backward()

    def _note_grads(self, outputs: Any, grads: Any, *args: Any, **kwargs: Any) -> None:
        self._call.has_grads = any(grad is not None for grad in grads)

    def _run_backward(self, original: Original) -> Any:
        log, passes = self.log, self.log.passes

        def run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if log.thread.is_here() or log.thread.may_go_over():
                passes.unused_graphs.settle()
                passes.grad_calls += not kwargs.get("accumulate_grad")
            if not kwargs.get("accumulate_grad") or not self._is_watched():
                return original.call(outputs, *args, **kwargs)
            backward = self._begin(outputs, args)
            try:
                return original.call(outputs, *args, **kwargs)
            except RuntimeError:
                self._failed(backward, outputs)
                raise
            finally:
                self._ended(backward)

        return run_backward

    def _is_watched(self) -> bool:
        log = self.log
        if not log.thread.is_here():
            if not log.thread.goes_over(trained=log.passes.count > 0):
                return False
            log.index.thread_changed()
        if log.steps - len(log.stepping) >= log.passes.most_updates and not log.thread.beside:
            log.forget_unfinished()
            log.passes.on_enough()
            return False
        return log.passes.current is None

    @never_raises
    def _failed(self, backward: Backward, outputs: Any) -> None:
        trace, roots = self.log.trace, [root for root in outputs if isinstance(root, Tensor)]
        backward.changes, nodes = list(trace.changes), autograd_graph.nodes(*(root.grad_fn for root in roots))
        backward.ops = [*filter(None, map(trace.of, nodes)), *(op for x in roots for op in ops_below(trace.op(x)))]
        updated = self.log.passes.last_update >= backward.previous >= 0
        backward.carried = updated and any(autograd_graph.older(root.grad_fn, backward.previous) for root in roots)

    @never_raises
    def _ended(self, backward: Backward) -> None:
        index, passes = self.log.index, self.log.passes
        _, _, changed = index.changes()
        index.with_new_grad |= changed
        norms = None
        if changed and (self._checks_after or index.wanted_values_after & changed):
            self._checks_after = max(0, self._checks_after - 1)
            norms = index.norms(changed)
        self.log.emit(Added(backward, changed, norms))
        passes.current, passes.replaced = None, []
        self.log.trace.pass_ended()

    @never_raises
    def _begin(self, outputs: Any, args: Any) -> Backward:
        log, passes, index = self.log, self.log.passes, self.log.index
        passes.count += 1
        present = log.detect_changes()
        site, path = site_and_path(sys._getframe(2))
        log.note_callers(site)
        if not log.optimizers:
            self._moved_by_hand(present, site)
        backward = Backward(passes.count, site, path, present)
        retain, backward.create, inputs = args[1], args[2], args[3]
        backward.retain = bool(retain) and not backward.create
        backward.has_grads = getattr(self._call, "has_grads", False) or bool(inputs)
        if log.stepping:
            step = log.stepping[-1]
            versions = index.versions_of(step.params)
            backward.moved = step.closure and step.versions not in (-1, versions)
            step.closure, step.versions, backward.closure_of = True, versions, step.optimizer
        if len(self._began) >= _MOST_CALL_PATHS and path not in self._began:
            self._began.clear()
        backward.previous, self._began[path] = self._began.get(path, -1), _torch.sequence_number()
        if isinstance(root := outputs[0], Tensor):
            self._watcher.examine(backward, root, sys._getframe(2))
        if isinstance(root, Tensor) and (node := root.grad_fn) is not None:
            if len(outputs) == 1 and log.steps == self._steps:  # gradients accumulate
                backward.mass, backward.scales, backward.tokens = autograd_graph.weighted_means(node)
            backward.scaled = log.scales and autograd_graph.scaled(node)
            passes.compiled = self._watcher.compiled
            self._inspect_graph(backward, node)
        self._steps = log.steps
        if backward.create:  # keep the tensors in .grad, which create_graph replaces, so that their ids are not reused
            passes.replaced = index.grads(backward.present)
        if backward.present and (self._checks or index.wanted_values & backward.present):
            self._checks = max(0, self._checks - 1)
            backward.norms = index.norms(backward.present)
        passes.newest = passes.current = backward
        log.emit(backward)
        return backward

    def _moved_by_hand(self, present: int, site: Site) -> None:
        """Emit a step by MANUAL_UPDATE if weights with a gradient have changed since the weights were last recorded."""
        log = self.log
        if moved := log.index.weights_changed() & present:
            log.passes.last_update = _torch.sequence_number()
            log.steps += 1
            log.emit(OptimizerMade(NO_SITE, MANUAL_UPDATE, "your own update", moved, is_custom_class=True))
            log.emit(Step(updates_by_hand(site), MANUAL_UPDATE, moved, moved))

    def _inspect_graph(self, backward: Backward, node: Any) -> None:
        number, log = backward.number, self.log
        if number in (1, 2, 8) or not number % 512:  # find parameters that are in no module and no optimizer
            leaves = autograd_graph.leaves(node)
            log.index.bits(leaf for leaf, _ in leaves if isinstance(leaf, nn.Parameter) or not log.optimizers)
            log.models.note_depths(leaves)
            log.find_names(sys._getframe(4), params=log.index.known_bits(leaf for leaf, _ in leaves))
            if not log.optimizers:
                log.index.weights_changed()  # record the new weights for later comparisons
        if backward.retain:
            self._retained += 1
            if self._retained <= 16 or self._retained & (self._retained - 1) == 0:
                backward.nodes = sum(1 for _ in autograd_graph.nodes(node))
        if not number % autograd_graph.LOOK_EVERY:
            backward.alive = max(self._losses.alive(number), log.passes.outputs.alive(number))
            if backward.alive >= 6:
                backward.holder = find_graph_holder(sys._getframe(4), number)
            if backward.holder is None and not number % (4 * autograd_graph.LOOK_EVERY):
                models = [module for model in log.models.recorded() if (module := model.module()) is not None]
                backward.holder = find_hook_holder(models)
        self._losses.add(node, number)

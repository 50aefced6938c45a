"""Listens to a training loop while it runs, and writes down each step of each optimizer."""

from __future__ import annotations

import functools
import math
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from ...gradients import Contributions, Provenance
from ...scenes import Arrow, Arrows
from .loop_record import LoopRecord, UpdateRow

_MOST_ROWS = 2_000
_MOST_GRADIENTS = 24  # gradients drawn; beyond them every second one is dropped
_MOST_NODES = 2_000  # graph nodes counted
_MOST_LOOKED_AT = 200  # newest items of a list in which graphs may be kept
_MOST_COPIED = 4_000_000  # elements of weights that are compared before and after a step
_NEWEST = 8  # arrows drawn; the older ones together are one more
_MODES = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)
"""Layers that work differently in training."""


class LoopObserver:
    """``with observer:`` around a loop; ``record`` then holds what was seen.

    ``filename`` is that of the loop's text; ``on_update`` is called before every step, and may raise to end the loop.
    Its patches are put on before the doctor's and taken off after them, so the doctor finds the learner's own lines.
    """

    def __init__(self, filename: str, given: Iterable[object], on_update: Callable[[int], None]) -> None:
        self.record = LoopRecord()
        self._filename, self._on_update = filename, on_update
        self._given = [one for one in given if isinstance(one, Optimizer)]
        self._watches: dict[int, _OptimizerWatch] = {}
        self._by_hand: _OptimizerWatch | None = None
        self._scaled: deque[tuple[weakref.ref[Tensor], float]] = deque(maxlen=16)
        self._stride = 1
        self._before: dict[int, list[Tensor]] = {}
        self._thread = 0
        self._exit = ExitStack()

    def __enter__(self) -> LoopObserver:
        self._thread = threading.get_ident()
        put = self._replace
        put(torch.autograd, "backward", self._backward)
        put(Optimizer, "__init__", self._made)
        put(Optimizer, "add_param_group", self._extended)
        put(torch.amp.GradScaler, "scale", self._scale)
        put(torch.amp.GradScaler, "step", functools.partial(self._count, "GradScaler.step"))
        put(torch.amp.GradScaler, "unscale_", functools.partial(self._count, "GradScaler.unscale_"))
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            put(torch.nn.utils, name, functools.partial(self._count, name))
        for handle in (
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
            register_module_forward_pre_hook(self._forward),
        ):
            self._exit.callback(handle.remove)
        for optimizer in self._given:
            self._watch(optimizer)
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()
        for watch in (*self._watches.values(), *([self._by_hand] if self._by_hand else [])):
            watch.provenance.close()
        self._watches.clear()
        self._given, self._by_hand = [], None

    def _replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        replacement = functools.wraps(original)(make(original))
        setattr(owner, name, replacement)
        self._exit.callback(setattr, owner, name, original)

    def _count(self, name: str, original: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.record.calls[name] += 1
            return original(*args, **kwargs)

        return counted

    def _scale(self, original: Any) -> Any:
        def scale(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            if isinstance(result, Tensor):
                self._scaled.append((weakref.ref(result), float(scaler.get_scale())))
            return result

        return scale

    def _made(self, original: Any) -> Any:
        def init(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            self._watch(optimizer)

        return init

    def _extended(self, original: Any) -> Any:
        def add_param_group(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            if id(optimizer) in self._watches:
                self._watches.pop(id(optimizer)).provenance.close()
                self._watch(optimizer)

        return add_param_group

    def _watch(self, optimizer: Optimizer) -> _OptimizerWatch:
        known = self._watches.get(id(optimizer))
        if known is None or known.optimizer is not optimizer:
            params = [param for group in optimizer.param_groups for param in group["params"]]
            known = self._watches[id(optimizer)] = _OptimizerWatch(optimizer, params)
        return known

    def _is_ours(self) -> bool:
        return threading.get_ident() == self._thread

    # A backward pass --------------------------------------------------------------------------------------------------

    def _backward(self, original: Any) -> Any:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
            if not self._is_ours():
                original(tensors, *args, **kwargs)
                return
            roots = [root for root in ([tensors] if isinstance(tensors, Tensor) else tensors) if root.numel() == 1]
            loss = math.fsum(self._unscaled(root) for root in roots) if roots else math.nan
            watches = list(self._watches.values())
            if not watches:
                self._by_hand = self._by_hand or _OptimizerWatch(None, _leaves(roots))
                watches = [self._by_hand]
            for watch in watches:
                watch.before_backward()
            line = _line_of(sys._getframe(1), self._filename)
            original(tensors, *args, **kwargs)
            self.record.backwards += 1
            for watch in watches:
                watch.after_backward(loss, line)
            if self._by_hand in watches:
                self._on_update(self.record.updates + 1)
                self._add(self._by_hand.row("", True, 0, None), None)

        return backward

    def _unscaled(self, root: Tensor) -> float:
        scale = next((by for of, by in reversed(self._scaled) if of() is root), 1.0)
        return float(root.detach()) / scale

    # A step -----------------------------------------------------------------------------------------------------------

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if not self._is_ours():
            return
        self._on_update(self.record.updates + 1)
        watch = self._watch(optimizer)
        self._before[id(optimizer)] = watch.copy_weights()

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if not self._is_ours():
            return
        watch = self._watch(optimizer)
        moved = watch.moved(self._before.pop(id(optimizer), []))
        if moved is not None:
            self.record.moved |= moved
        found = _names_of(sys._getframe(1), self._filename)
        models = [one for one in found if isinstance(one, nn.Module)]
        training = all(module.training for model in models for module in model.modules() if isinstance(module, _MODES))
        closely = not self.record.updates % self._stride
        row = watch.row(self._name(optimizer), training, _nodes_held(found), moved, closely=closely)
        self._add(row, watch if closely else None)

    def _name(self, optimizer: Optimizer) -> str:
        same = [w.optimizer for w in self._watches.values() if type(w.optimizer) is type(optimizer)]
        at = next(at for at, one in enumerate(same) if one is optimizer)
        return type(optimizer).__name__ + (f" {at + 1}" if len(same) > 1 else "")

    def _add(self, row: UpdateRow, watch: _OptimizerWatch | None) -> None:
        record = self.record
        record.updates += 1
        if len(record.rows) < _MOST_ROWS:
            record.rows.append(row)
        if watch is None:
            return
        record.gradients[record.updates] = watch.arrows()
        if len(record.gradients) > _MOST_GRADIENTS:
            self._stride *= 2
            kept = [number for number in record.gradients if not (number - 1) % self._stride]
            record.gradients = {number: record.gradients[number] for number in kept}

    def _forward(self, module: nn.Module, args: Any) -> None:
        if not self._is_ours():
            return
        calls = self.record.calls
        if isinstance(module, _MODES):
            calls[f"{type(module).__name__} {'in training' if module.training else 'in evaluation'}"] += 1
        if isinstance(module, nn.Linear) and torch.is_autocast_enabled(module.weight.device.type):
            calls["autocast"] += 1
        if not torch.is_grad_enabled():
            calls["forward without gradients"] += 1


class _OptimizerWatch:
    """The account of one optimizer's parameters."""

    def __init__(self, optimizer: Optimizer | None, params: Iterable[Tensor]) -> None:
        self.optimizer = optimizer
        self.params = [param for param in params if param.requires_grad]
        self.provenance = Provenance((f"parameter {at}", param) for at, param in enumerate(self.params))
        self.provenance.keeps_contributions = self.provenance.measure = True
        if optimizer is not None:
            self.provenance.watch([optimizer], has_scaler=True)
        self._passes: list[tuple[int, int, float]] = []  # since the newest step: number, line of the loop, loss
        self._full = self._full_before = False
        self._measured: Contributions | None = None
        self._seen = 0

    def before_backward(self) -> None:
        self._seen = self.provenance.backwards
        if not self._passes:
            self._full = any(bool(p.grad.detach().count_nonzero()) for p in self.params if p.grad is not None)

    def after_backward(self, loss: float, line: int) -> None:
        if self.provenance.backwards == self._seen:
            return  # it has not reached these parameters
        if not self._passes:
            self._full_before = self._full
        self._passes.append((self.provenance.backwards, line, loss))

    def copy_weights(self) -> list[Tensor]:
        if sum(param.numel() for param in self.params) > _MOST_COPIED:
            return []
        return [param.detach().clone() for param in self.params]

    def moved(self, before: list[Tensor]) -> set[int] | None:
        """Return the ids of the parameters that differ from what they were, None where that is not known."""
        if self.params and not before:
            return None
        pairs = zip(self.params, before, strict=True)
        return {id(param) for param, old in pairs if not torch.equal(param.detach(), old)}

    def row(self, name: str, training: bool, nodes: int, moved: set[int] | None, *, closely: bool = False) -> UpdateRow:
        """Write down what the step that has just run found in ``.grad``; ``closely`` also measures ``alone``."""
        self.provenance.sync()
        histories = self.provenance.histories
        fresh, stale = max((history.count() for history in histories), key=sum, default=(0, 0))
        leftover = {span for history in histories for span in history.leftover()}
        holds = {span for history in histories for span in history.batches}
        numbers = {n for first, last in holds for n in range(first, last + 1)}
        numbers -= {n for first, last in leftover for n in range(first, last + 1)}
        # A pass for another purpose, as for an attack on the inputs, stands on another line and is not in .grad now.
        lines = {line for number, line, _ in self._passes if number in numbers} or {at for _, at, _ in self._passes}
        losses = [loss for _, line, loss in self._passes if line in lines]
        grads = [param.grad.detach() for param in self.params if param.grad is not None]
        self._measured = self.provenance.contributions() if closely else None
        alone = math.nan
        if self._measured is not None and self._measured.vectors is not None:
            parts = zip(self._measured.parts, self._measured.vectors.norm(dim=1).tolist(), strict=False)
            alone = math.fsum(norm for part, norm in parts if part.batches is not None and part.batches[1] in numbers)
        row = UpdateRow(
            optimizer=name,
            loss=math.fsum(losses) if losses else math.nan,
            norm=math.hypot(*(float(grad.float().norm()) for grad in grads)),
            alone=alone,
            fresh=fresh,
            stale=stale,
            full_before=self._full_before,
            tensors=len(self.params),
            with_grad=len(grads),
            moved=len(self.params) if moved is None else len(moved),
            training=training,
            nodes=nodes,
        )
        self._passes, self._full_before = [], False
        return row

    def arrows(self) -> Arrows:
        """Return what ``.grad`` held at the row that was looked at closely, as the gradient panel of a lab draws it."""
        measured = self._measured
        spans = sorted({span for history in self.provenance.histories for span in history.batches})
        if measured is None:
            return Arrows([], (self.provenance.contents().norm, 0.0), spans, measured=False)
        return Arrows(_arrows(measured), (measured.norm, 0.0), spans)


def _arrows(measured: Contributions) -> list[Arrow]:
    """Return an arrow for each of the newest contributions, the older ones of a kind together as one."""
    arrows = [Arrow(part.batches, part.along, part.across, part.share, part.stale) for part in measured.parts]
    older, newest = (arrows[:-_NEWEST], arrows[-_NEWEST:]) if len(arrows) > _NEWEST + 1 else ([], arrows)
    together = []
    for stale in (True, False):
        of_kind = [arrow for arrow in older if arrow.stale == stale]
        if not of_kind:
            continue
        numbers = [number for arrow in of_kind for number in arrow.batches or ()]
        span = (min(numbers), max(numbers)) if numbers else None
        x, y, share = (math.fsum(part) for part in zip(*((a.x, a.y, a.share) for a in of_kind), strict=True))
        together.append(Arrow(span, x, y, share, stale))
    return [*together, *newest]


def _names_of(frame: Any, filename: str) -> list[object]:
    """Return what the names of the loop's innermost function stand for, and the globals that it uses."""
    while frame is not None and frame.f_code.co_filename != filename:
        frame = frame.f_back
    if frame is None:
        return []
    used = {name: frame.f_globals[name] for name in frame.f_code.co_names if name in frame.f_globals}
    return list({**used, **frame.f_locals}.values())


def _line_of(frame: Any, filename: str) -> int:
    """Return the line of the loop that is at work, 0 where it is none of its lines."""
    while frame is not None and frame.f_code.co_filename != filename:
        frame = frame.f_back
    return 0 if frame is None else int(frame.f_lineno)


def _nodes_held(names: list[object]) -> int:
    """Count the graph nodes that tensors among these hold on to, also those in lists."""
    waiting: list[Any] = []
    for one in names:
        some = one[-_MOST_LOOKED_AT:] if isinstance(one, list) else [one]
        waiting += [item.grad_fn for item in some if isinstance(item, Tensor) and item.grad_fn is not None]
    return len(_reached(waiting))


def _reached(waiting: list[Any]) -> set[Any]:
    found: set[Any] = set()
    while waiting and len(found) < _MOST_NODES:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting += [inner for inner, _ in node.next_functions]
    return found


def _leaves(roots: list[Tensor]) -> list[Tensor]:
    """Return the leaf tensors that a loss depends on."""
    nodes = _reached([root.grad_fn for root in roots])
    leaves = [getattr(node, "variable", None) for node in nodes]
    return [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.is_leaf]

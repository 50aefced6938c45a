"""Listens to a training loop beside the doctor, on its log, and writes down each step of each optimizer."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from ..._frames import frame_in, variables
from ...doctor import Listener, events, nodes
from ...gradients import Contributions, Provenance, union, within
from ...scenes import Arrows, arrows_of
from .loop_history import LoopHistory, UpdateRow

_MOST_ROWS = 2_000
_MOST_GRADIENTS = 24  # gradients drawn; beyond them every second one is dropped
_MOST_NODES = 2_000  # graph nodes counted
_MOST_LOOKED_AT = 200  # newest items of a list in which graphs may be kept
_MOST_COPIED = 4_000_000  # elements of weights that are compared before and after a step
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
_MODES = (*_DROPOUTS, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
"""Layers that work differently in training."""


class LoopObserver(Listener):
    """Attached to a watch around a loop; ``history`` then holds what was seen.

    ``filename`` is that of the loop's text; ``before_update(number)`` is called before every step, and may raise to end
    the loop.
    """

    def __init__(self, filename: str, before_update: Callable[[int], None]) -> None:
        self.history = LoopHistory()
        self._filename, self._before_update = filename, before_update
        self._accounts: dict[int, _OptimizerAccount] = {}
        self._by_hand: _OptimizerAccount | None = None
        self._loss = math.nan  # of the pass that runs
        self._stride = 1
        self._before: dict[int, list[Tensor]] = {}

    def hooks(self) -> list[Any]:
        """Hear of what is no event: each layer's forward, and the end of a step."""
        return [
            register_optimizer_step_post_hook(self._after_step),
            register_module_forward_pre_hook(self._forward),
            self,
        ]

    def remove(self) -> None:
        """Take every hook off the parameters, at the end of the watch."""
        for account in self._at_work():
            account.provenance.close()
        self._accounts.clear()
        self._by_hand = None

    def heard(self, event: events.Event) -> None:
        """Take what the picture needs from an event."""
        if isinstance(event, events.Backward):
            self._pass_begins(event)
        elif isinstance(event, events.Added):
            self._pass_ended(event.backward)
        elif isinstance(event, events.OptimizerMade):
            self._known(event.optimizer)
        elif isinstance(event, events.Step) and (account := self._known(event.optimizer)) is not None:
            self._before_update(self.history.updates + 1)
            self._before[id(account.optimizer)] = account.copy_weights()
        elif isinstance(event, events.ScalerStep):
            self.history.calls["GradScaler.step"] += 1
        elif isinstance(event, events.Clip) and not event.measures:
            self.history.calls["clip"] += 1

    def _known(self, number: int) -> _OptimizerAccount | None:
        """Return the account of an optimizer by the log's number; None where the loop's own lines step."""
        optimizer = None if number == events.MANUAL_UPDATE else self.log.optimizers[number]
        return None if optimizer is None else self._account(optimizer)

    def _account(self, optimizer: Optimizer) -> _OptimizerAccount:
        known = self._accounts.get(id(optimizer))
        params = [param for group in optimizer.param_groups for param in group["params"]]
        if known is not None and known.given != len(params):  # add_param_group
            known.provenance.close()
            known = None
        if known is None:
            known = self._accounts[id(optimizer)] = _OptimizerAccount(optimizer, params)
        return known

    def _at_work(self) -> list[_OptimizerAccount]:
        by_hand = [] if self._by_hand is None else [self._by_hand]
        return [self._account(one.optimizer) for one in self._accounts.values() if one.optimizer is not None] or by_hand

    def _pass_begins(self, event: events.Backward) -> None:
        roots = [root for root in self.log.passes.roots if isinstance(root, Tensor) and root.numel() == 1]
        scaler = self.log.scaler() if event.scaled and self.log.scaler is not None else None
        scale = 1.0 if scaler is None else float(scaler.get_scale())
        self._loss = math.fsum(float(root.detach()) / scale for root in roots) if roots else math.nan
        if not self._accounts:
            self._before_update(self.history.updates + 1)
            self._by_hand = self._by_hand or _OptimizerAccount(None, _leaves(roots))
        for account in self._at_work():
            account.before_pass()

    def _pass_ended(self, backward: events.Backward) -> None:
        for account in self._at_work():
            if account.after_pass(backward.call_path, self._loss) and account is self._by_hand:
                self._add(account.row("", True, 0, None), None)

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        before = self._before.pop(id(optimizer), None)
        if before is None or not self.log.is_watched_thread():
            return
        account = self._account(optimizer)
        moved = account.moved(before)
        self.history.moved |= moved or set()
        found = _names_of(sys._getframe(1), self._filename)
        models = [one for one in found if isinstance(one, nn.Module)]
        training = all(module.training for model in models for module in model.modules() if isinstance(module, _MODES))
        closely = not self.history.updates % self._stride
        row = account.row(self._name(optimizer), training, _nodes_held(found), moved, closely=closely)
        self._add(row, account if closely else None)

    def _name(self, optimizer: Optimizer) -> str:
        same = [one.optimizer for one in self._accounts.values() if type(one.optimizer) is type(optimizer)]
        at = next(at for at, one in enumerate(same) if one is optimizer)
        return type(optimizer).__name__ + (f" {at + 1}" if len(same) > 1 else "")

    def _add(self, row: UpdateRow, account: _OptimizerAccount | None) -> None:
        history = self.history
        history.updates += 1
        if len(history.rows) < _MOST_ROWS:
            history.rows.append(row)
        if account is None:
            return
        history.gradients[history.updates] = account.arrows()
        if len(history.gradients) > _MOST_GRADIENTS:
            self._stride *= 2
            kept = [number for number in history.gradients if not (number - 1) % self._stride]
            history.gradients = {number: history.gradients[number] for number in kept}

    def _forward(self, module: nn.Module, args: Any) -> None:
        if not self.log.is_watched_thread():
            return
        calls = self.history.calls
        if isinstance(module, _MODES):
            calls[f"{type(module).__name__} {'in training' if module.training else 'in evaluation'}"] += 1
        if isinstance(module, nn.Linear) and torch.is_autocast_enabled(module.weight.device.type):
            calls["autocast"] += 1
        if not torch.is_grad_enabled():
            calls["forward without gradients"] += 1


class _OptimizerAccount:
    """What is in the gradients of one optimizer's parameters, and what its steps found there."""

    def __init__(self, optimizer: Optimizer | None, params: list[Tensor]) -> None:
        self.optimizer, self.given = optimizer, len(params)
        self.params = [param for param in params if param.requires_grad]
        self.provenance = Provenance((f"parameter {at}", param) for at, param in enumerate(self.params))
        self.provenance.keeps_contributions = self.provenance.measure = True
        if optimizer is not None:
            self.provenance.watch([optimizer], has_scaler=True)
        self._passes: list[tuple[int, int, float]] = []  # since the newest step: number, call path, loss
        self._full = self._full_before = False
        self._measured: Contributions | None = None
        self._seen = 0

    def before_pass(self) -> None:
        self._seen = self.provenance.backwards
        if not self._passes:
            self._full = any(bool(p.grad.detach().count_nonzero()) for p in self.params if p.grad is not None)

    def after_pass(self, call_path: int, loss: float) -> bool:
        """Return whether a pass has reached these parameters; a step inside of it ends it early."""
        if self.provenance.backwards == self._seen:
            return False
        if not self._passes:
            self._full_before = self._full
        self._seen = self.provenance.backwards
        self._passes.append((self._seen, call_path, loss))
        return True

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
        holds = union(span for history in histories for span in history.batches)
        leftover = union(span for history in histories for span in history.leftover())

        def is_fresh(number: int) -> bool:
            return within(number, holds) and not within(number, leftover)

        # A pass for another purpose, as for an attack on the inputs, has another place and is not in .grad now.
        places = {at for number, at, _ in self._passes if is_fresh(number)} or {at for _, at, _ in self._passes}
        losses = [loss for _, at, loss in self._passes if at in places]
        grads = [param.grad.detach() for param in self.params if param.grad is not None]
        measured = self._measured = self.provenance.contributions() if closely else None
        alone = math.nan
        if measured is not None and measured.vectors is not None:
            parts = zip(measured.parts, measured.vectors.norm(dim=1).tolist(), strict=False)
            alone = math.fsum(norm for part, norm in parts if part.batches is not None and is_fresh(part.batches[1]))
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
        holds = union(span for history in self.provenance.histories for span in history.batches)
        if measured is None:
            return Arrows([], (self.provenance.contents().norm, 0.0), holds, measured=False)
        return Arrows(arrows_of(measured), (measured.norm, 0.0), holds)


def _names_of(frame: Any, filename: str) -> list[object]:
    """Return what the names of the loop's innermost function stand for, and the globals that it uses."""
    frame = frame_in(frame, (filename,))
    if frame is None:
        return []
    used = {name: frame.f_globals[name] for name in frame.f_code.co_names if name in frame.f_globals}
    return list({**used, **variables(frame)}.values())


def _nodes_held(names: list[object]) -> int:
    """Count the graph nodes that tensors among these hold on to, also those in lists."""
    tensors = (item for one in names for item in (one[-_MOST_LOOKED_AT:] if isinstance(one, list) else [one]))
    roots = [item.grad_fn for item in tensors if isinstance(item, Tensor)]
    return sum(1 for _ in nodes(*roots, most=_MOST_NODES))


def _leaves(roots: Iterable[Tensor]) -> list[Tensor]:
    """Return the leaf tensors that losses depend on."""
    found = (getattr(node, "variable", None) for node in nodes(*(root.grad_fn for root in roots), most=_MOST_NODES))
    return [leaf for leaf in found if isinstance(leaf, Tensor) and leaf.is_leaf]

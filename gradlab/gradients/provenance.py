"""Provenance: which backward passes each ``.grad`` contains, and how many steps have applied each pass.

Every ``backward()`` that adds to a watched ``.grad`` gets a number: 1, 2, 3, ... For each parameter, a ParameterHistory
holds the numbers of the passes in the current ``.grad``, and the number of steps that had applied a non-empty ``.grad``
before each pass. A step applies all of ``.grad``, so every step after a pass has applied that pass once.

Two hooks per parameter write events into the history. The hooks wait for the device only in every 64th pass, and copy
no gradient unless contributions are kept. An in-place change either clears ``.grad`` (``zero_()``) or modifies it, as
clipping does: ``sync`` reads the norm, which stays on the device until then, and takes 0 to mean cleared.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Collection, Iterable
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from .. import _torch
from .contributions import (
    Contributions,
    GradContents,
    GradEvent,
    KeptContributions,
    ParameterHistory,
    Span,
    Vectors,
    make_contributions,
    measure_parts,
    newest_and_older,
    number_to_keep,
    plain,
    union,
    within,
)

_SYNC_EVERY = 64
_SHOW_GRADS_EVERY = 4
HistoriesCopy = tuple[list[ParameterHistory], int, int, Vectors | None]
"""The state of a Provenance: histories, number of backward passes, number of steps, kept contributions or None."""


class Provenance:
    """Tracks the ``.grad`` of parameters, and the steps of the optimizers passed to ``watch()``, until ``close()``."""

    def __init__(self, named_parameters: Iterable[tuple[str, Tensor]]) -> None:
        self.histories: list[ParameterHistory] = []
        self.params: list[Tensor] = []
        self.backwards = 0
        self.steps = 0
        self.measure = False  # whether to measure each new contribution, which takes a little time
        self.on_backward: Callable[[], None] | None = None
        # Called with the gradients at every fourth step or, if ``measure`` is True, at each (7 % of an update's time).
        self.on_step: Callable[[list[Tensor]], None] | None = None
        self._kept_contributions: KeptContributions | None = None
        self._written = True  # whether other code wrote to a .grad after the newest backward pass
        self._has_scaler = False
        self._tracked: dict[int, tuple[ParameterHistory, Tensor]] = {}  # id of a parameter -> history, parameter
        self._added = (GradEvent.ADDED, 0)
        self._pass = -1
        self._numbered = -1
        self._handles: list[Any] = []
        self._on_optimizers: list[Any] = []
        provenance = weakref.ref(self)  # the parameters' hooks must not keep this object alive
        for name, param in named_parameters:
            if not param.requires_grad:
                continue
            history, index = ParameterHistory(name), len(self.params)
            self.histories.append(history)
            self.params.append(param)
            self._tracked[id(param)] = history, param
            self._handles.append(param.register_hook(_before_adding(provenance, index, param)))
            self._handles.append(param.register_post_accumulate_grad_hook(_after_adding(provenance, index)))

    def watch(self, optimizers: Iterable[torch.optim.Optimizer], *, has_scaler: bool = False) -> None:
        """Count the steps of ``optimizers``, but no longer those of earlier optimizers. Skipped steps do not count.

        ``has_scaler`` says whether a GradScaler is used, which unscales ``.grad`` without incrementing ``_version``.
        """
        self._has_scaler = has_scaler
        provenance = weakref.ref(self)

        def before_step(optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:
            if (alive := provenance()) is not None:
                alive._step(optimizer)

        for handle in self._on_optimizers:
            handle.remove()
        self._on_optimizers = [optimizer.register_step_pre_hook(before_step) for optimizer in optimizers]

    def close(self) -> None:
        """Remove every hook."""
        for handle in [*self._handles, *self._on_optimizers]:
            handle.remove()
        self._handles, self._on_optimizers = [], []

    def contents(self) -> GradContents:
        """Return the GradContents of all parameters as they are now, after waiting for the device."""
        self.sync()
        distinct = self._distinct()
        holds = union(span for history in distinct for span in history.batches)
        applied, reused = (union(span for history in distinct for span in history.applied(least)) for least in (1, 2))
        grads = [plain(param.grad).float() for param in self.params if param.grad is not None]
        norm = math.hypot(*map(float, _torch.foreach_norm(grads))) if grads else 0.0
        return GradContents(not grads, holds, applied, reused, norm)

    def times_applied(self, number: int) -> int:
        """Return the maximum, over all parameters, of the number of steps that have applied the batch ``number``."""
        histories = (history for history in self._distinct() if within(number, history.batches))
        return max((history.times_applied(number) for history in histories), default=0)

    def _distinct(self) -> Collection[ParameterHistory]:
        return {(h.steps, *h.batches, *h.rhythms): h for h in self.histories}.values()

    @property
    def keeps_contributions(self) -> bool:
        """Whether each new contribution to ``.grad`` is kept, which is not possible for a model that is too large."""
        return self._kept_contributions is not None

    @keeps_contributions.setter
    def keeps_contributions(self, on: bool) -> None:
        size = max((param.element_size() for param in self.params), default=4)
        most = number_to_keep(sum(param.numel() for param in self.params), size) if self.params else 0
        if on and most and self._kept_contributions is None:
            self._kept_contributions = KeptContributions(self.params, most, self.backwards)
        elif not on:
            self._kept_contributions = None

    def contributions(self, scale: float = 1.0, contents: GradContents | None = None) -> Contributions | None:
        """Return the contribution of each batch to ``.grad``, or None if the contributions were not measured.

        ``.grad`` is still multiplied by the loss scale ``scale``; ``contents`` can be a result of ``contents()``.

        Let c_k be the gradient that backward pass k added, over all parameters, with all later scaling of ``.grad``
        (clipping, unscaling), and let g = c_1 + ... + c_n be the current ``.grad``. Then:

        - ``share`` is (c_k . g) / (g . g), which has no unit.
        - ``along`` is (c_k . g) / |g|, ``length`` is |c_k|, and ``norm`` is |g|, all of them divided by ``scale``.

        If ``keeps_contributions`` is True, each of the newest batches (up to 32) is one part, and all older batches are
        another. Otherwise, if ``measure`` was True in the newest pass, its batch is one part, and all older batches are
        another. Keeping contributions takes up to 33 copies of ``.grad`` (about 16 MiB) and 10 % of an update's time.
        """
        contents = contents or self.contents()
        if (vectors := self._vectors()) is not None:
            return measure_parts(vectors, self.times_applied, scale)
        holds, norm = contents.holds, contents.norm / scale
        if not holds or not norm:
            return Contributions((), norm)
        if holds[0][0] == holds[-1][1]:
            return make_contributions(holds, [(norm, norm)], self.times_applied, norm)
        sums = self._sums(holds[-1][1])
        return None if sums is None else newest_and_older((holds[0][0], holds[-1][1]), self.times_applied, sums, norm)

    def _vectors(self) -> Vectors | None:
        if self._kept_contributions is None:
            return None
        with _torch.outside_dispatch_modes():
            return self._kept_contributions.vectors(list(map(attrgetter("batches"), self.histories)), self.backwards)

    def _sums(self, newest: int) -> tuple[float, float, float] | None:
        """Return ``sums`` for ``newest_and_older`` over all parameters, or None if the newest batch is not measured."""
        sums = [0.0, 0.0, 0.0]
        for history, param in self._tracked.values():
            if param.grad is None or not history.batches:
                continue
            if history.batches[-1][1] != newest:  # the newest backward pass did not add to this .grad
                sums[2] += float(plain(param.grad).square().sum())
            elif not history.was_added:
                sums[0] += float(plain(param.grad).square().sum())
            elif history.newest is None:
                return None
            else:
                sums = [whole + part for whole, part in zip(sums, history.newest.tolist(), strict=True)]
        return sums[0], sums[1], sums[2]

    def reused(self) -> tuple[int, Span] | None:
        """Return the newest step that applied batches again, and the span of these batches, or None if none did."""
        self.sync()
        return max(filter(None, map(attrgetter("reused"), self.histories)), default=None)

    def sync(self) -> None:
        """Update every history from its parameter's current ``.grad``, after waiting for the device."""
        self._detect_changes(self._tracked.values())
        for history in self.histories:
            history.sync()

    def copy_histories(self) -> HistoriesCopy:
        """Return a copy of all histories, counts and kept contributions, for ``restore_histories``."""
        self.sync()
        return [history.copy() for history in self.histories], self.backwards, self.steps, self._vectors()

    def restore_histories(self, saved: HistoriesCopy) -> None:
        """Restore ``saved``, a result of ``copy_histories``. Every ``.grad`` must have been restored before."""
        histories, self.backwards, self.steps, vectors = saved
        for history, old in zip(self.histories, histories, strict=True):
            history.take(old)
        self._written = True
        if self._kept_contributions is not None:  # drop contributions added after the state was copied
            self.keeps_contributions = False
            self.keeps_contributions = True
            if vectors is not None:
                self._kept_contributions.put_back(vectors)

    def _begin(self, number: int) -> None:
        """Check every ``.grad`` for changes, because the backward pass ``number`` has reached its first parameter."""
        self._pass = number
        self._detect_changes(self._tracked.values())
        if self._kept_contributions is not None:
            with _torch.outside_dispatch_modes():
                self._kept_contributions.begin(self.backwards, changed=self._written or self._has_scaler)
        self._written = False

    def _detect_changes(self, tracked: Iterable[tuple[ParameterHistory, Tensor]]) -> None:
        doubtful, grads = [], []
        for history, param in tracked:
            grad = param.grad
            history.had_grad = grad is not None
            if grad is None:
                if history.last_grad_ref is not None:
                    self._written, history.last_grad_ref = True, None
                    history.events.append((GradEvent.WRITTEN, 0.0))
            elif history.changed(grad):
                self._written = True
                history.remember(grad)
                if history.events or history.batches:
                    doubtful.append(history)
                    grads.append(plain(grad))
        if grads:  # use the 1-norm: in the 2-norm, squares of tiny gradients round to 0, as if .grad had been cleared
            with _torch.outside_dispatch_modes():
                norms = _torch.foreach_norm(grads, 1)
            for history, norm in zip(doubtful, norms, strict=True):
                history.events.append((GradEvent.WRITTEN, norm))

    def _number(self) -> None:
        """Number the current pass when it first adds to a ``.grad``, which ``torch.autograd.grad`` never does."""
        self._numbered = self._pass
        self.backwards += 1
        self._added = (GradEvent.ADDED, self.backwards)
        if self.backwards % _SYNC_EVERY == 0:
            for history in self.histories:
                history.sync()
        if self.on_backward is not None:
            self.on_backward()

    def _step(self, optimizer: torch.optim.Optimizer) -> None:
        self.steps += 1
        params = (param for group in optimizer.param_groups for param in group["params"])
        tracked = [self._tracked[id(param)] for param in params if id(param) in self._tracked]
        self._detect_changes(tracked)
        event = (GradEvent.STEPPED, self.steps)
        for history, param in tracked:
            if param.grad is not None:
                history.events.append(event)
        if self.on_step is not None and (self.measure or self.steps % _SHOW_GRADS_EVERY == 1):
            with _torch.outside_dispatch_modes():
                self.on_step([plain(param.grad) for _, param in tracked if param.grad is not None])


def _before_adding(provenance: weakref.ref[Provenance], index: int, param: Tensor) -> Callable[[Tensor], None]:
    reference = weakref.ref(param)  # a hook must not keep its own parameter alive

    def hook(grad: Tensor) -> None:
        alive, param = provenance(), reference()
        if alive is None or param is None:
            return
        if (number := _torch.current_graph_task()) != alive._pass:
            alive._begin(number)
        history = alive.histories[index]
        with _torch.outside_dispatch_modes():
            history.incoming = None
            if alive._kept_contributions is not None:
                alive._kept_contributions.take(index, plain(grad))
            elif alive.measure and history.had_grad:
                history.incoming = _sums_of(grad, param.grad)

    return hook


def _after_adding(provenance: weakref.ref[Provenance], index: int) -> Callable[[Tensor], None]:
    def hook(param: Tensor) -> None:
        alive = provenance()
        grad = param.grad
        if alive is None or grad is None:
            return
        if alive._numbered != alive._pass:
            alive._number()
        history = alive.histories[index]
        history.was_added, history.newest = history.had_grad, history.incoming if alive.measure else None
        history.remember(grad)
        history.events.append(alive._added)

    return hook


def _sums_of(new: Tensor, old: Tensor | None) -> Tensor:
    """Return the squared length of ``new``, its dot product with ``old``, and the squared length of ``old``."""
    new = plain(new).float()
    old = torch.zeros_like(new) if old is None else plain(old).float()
    return torch.stack([new.square().sum(), (new * old).sum(), old.square().sum()])

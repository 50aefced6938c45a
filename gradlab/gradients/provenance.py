"""Which backward is in which ``.grad``, and which of them a step has already used.

Every ``backward()`` that reaches a watched parameter gets a number: 1, 2, 3, ... For each parameter an Entry keeps the
numbers that are inside ``.grad`` now and the newest one that an optimizer step has applied. A step applies all that is
in ``.grad``, so "already applied" is always "up to this number", and a step used a batch twice exactly when it found
one of those numbers again.

No gradient is copied and nothing waits for the device. Two hooks a parameter write events into its entry. Whether an
in-place change of ``.grad`` was a clearing (``zero_()``) or not (clipping) is left on the device as a norm until
somebody asks: a gradient of nothing but zeros holds no batch.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from .. import _torch
from .._torch import outside_dispatch_modes
from .contents import GradContents, read_contents
from .parameter import ParameterHistory
from .spans import Span

_SYNC_EVERY = 64
_VECTORS_KEPT = 64
_SHOW_GRADS_EVERY = 4
_CLEAR = ("clear", None)


class Provenance:
    """The book of a model: watches its parameters, and the optimizers that it is told of, until ``close()``."""

    def __init__(self, named_parameters: Iterable[tuple[str, Tensor]], *, keep_vectors: bool = False) -> None:
        """Watch the parameters that require a gradient; ``keep_vectors`` keeps their contributions (tiny models)."""
        watched = [(name, param) for name, param in named_parameters if param.requires_grad]
        self.histories = [ParameterHistory(name) for name, _ in watched]
        self.params = [param for _, param in watched]
        self.backwards = 0
        self.steps = 0
        self.measure = False  # take the norm of contributions that are added to something? it costs a little
        self.on_backward: Callable[[], None] | None = None
        # Gets the gradients of every fourth step, and of each while ``measure`` is on: all would cost 7 % of an update.
        self.on_step: Callable[[list[Tensor]], None] | None = None
        self.loss_scale: Callable[[], float] = lambda: 1.0  # what the loop multiplies its losses by
        self.vectors: deque[tuple[int, Tensor]] | None = deque(maxlen=_VECTORS_KEPT) if keep_vectors else None
        self._tracked = list(zip(self.histories, self.params, strict=True))
        self._by_id = {id(param): entry for entry, param in self._tracked}
        self._newest_scale = 1.0
        self._added = ("add", 0)
        self._pass = -1
        self._numbered = -1
        self._handles: list[Any] = []
        self._on_optimizers: list[Any] = []
        provenance = weakref.ref(
            self
        )  # the hooks live on the parameters; through them the book must not keep itself alive
        for entry, param in self._tracked:
            self._handles.append(param.register_hook(_before_adding(provenance, entry)))
            self._handles.append(param.register_post_accumulate_grad_hook(_after_adding(provenance, entry)))

    def watch(self, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        """Note the steps of these optimizers, and no longer those of earlier ones; a skipped step is none."""
        provenance = weakref.ref(self)

        def before_step(optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:
            if (alive := provenance()) is not None:
                alive._step(optimizer)

        for handle in self._on_optimizers:
            handle.remove()
        self._on_optimizers = [optimizer.register_step_pre_hook(before_step) for optimizer in optimizers]

    def close(self) -> None:
        """Take every hook off again."""
        for handle in [*self._handles, *self._on_optimizers]:
            handle.remove()
        self._handles, self._on_optimizers = [], []

    def contents(self) -> GradContents:
        """Say what is in ``.grad`` now; this is the only call that waits for the device."""
        self.sync()
        return read_contents(self._tracked, self.backwards, self._newest_scale)

    def reused(self) -> tuple[int, Span] | None:
        """Return the newest step that applied batches again, as (step, batches), or None if none has."""
        self.sync()
        found = [entry.reused for entry in self.histories if entry.reused is not None]
        return max(found, default=None)

    def sync(self) -> None:
        """Bring every entry up to date with ``.grad`` as it is now."""
        self._detect_changes([(entry, param.grad) for entry, param in self._tracked])
        for entry in self.histories:
            entry.sync()

    def copy_histories(self) -> tuple[list[ParameterHistory], int, int]:
        """Return all that ``restore_histories`` needs to come back to this moment."""
        self.sync()
        return [entry.copy() for entry in self.histories], self.backwards, self.steps

    def restore_histories(self, saved: tuple[list[ParameterHistory], int, int]) -> None:
        """Go back to the moment of ``copy_histories``; the caller puts the gradients back."""
        histories, self.backwards, self.steps = saved
        for entry, old in zip(self.histories, histories, strict=True):
            entry.batches, entry.reused = list(old.batches), old.reused
            entry.applied_to, entry.applied_before = old.applied_to, old.applied_before
            entry.events.clear()
            entry.last_grad_ref = None

    def _begin(self, number: int) -> None:
        """A backward pass has reached its first parameter: look at every ``.grad`` before anything is added to it."""
        self._pass = number
        self._detect_changes([(entry, param.grad) for entry, param in self._tracked])

    def _detect_changes(self, tracked: list[tuple[ParameterHistory, Tensor | None]]) -> None:
        doubtful, grads = [], []
        for entry, grad in tracked:
            entry.had_grad = grad is not None
            if grad is None:
                if entry.last_grad_ref is not None:
                    entry.last_grad_ref = None
                    entry.events.append(_CLEAR)
            elif entry.changed(grad):
                entry.remember(grad)
                if entry.events or entry.batches:
                    doubtful.append(entry)
                    grads.append(_plain(grad))
        if grads:  # the 1-norm: squares of tiny gradients round to 0, and would look cleared
            with outside_dispatch_modes():
                norms = _torch.foreach_norm(grads, 1)
            for entry, norm in zip(doubtful, norms, strict=True):
                entry.events.append(("doubt", norm))

    def _number(self) -> None:
        """The pass under way does add to ``.grad`` (``torch.autograd.grad`` does not): it gets the next number."""
        self._numbered = self._pass
        self.backwards += 1
        self._added = ("add", self.backwards)
        self._newest_scale = self.loss_scale() if self.measure and any(e.had_grad for e in self.histories) else 1.0
        if self.backwards % _SYNC_EVERY == 0:
            for entry in self.histories:
                entry.sync()
        if self.on_backward is not None:
            self.on_backward()

    def _step(self, optimizer: torch.optim.Optimizer) -> None:
        self.steps += 1
        last_grad_ref = ((self._by_id.get(id(p)), p.grad) for group in optimizer.param_groups for p in group["params"])
        tracked = [(entry, grad) for entry, grad in last_grad_ref if entry is not None]
        self._detect_changes(tracked)
        event = ("step", self.steps)
        for entry, grad in tracked:
            if grad is not None:
                entry.events.append(event)
        if self.on_step is not None and (self.measure or self.steps % _SHOW_GRADS_EVERY == 1):
            with outside_dispatch_modes():
                self.on_step([_plain(grad) for _, grad in tracked if grad is not None])


def _before_adding(provenance: weakref.ref[Provenance], entry: ParameterHistory) -> Callable[[Tensor], None]:
    def hook(grad: Tensor) -> None:
        alive = provenance()
        if alive is None:
            return
        if (number := _torch.current_graph_task()) != alive._pass:
            alive._begin(number)
        with outside_dispatch_modes():
            if alive.measure:
                entry.incoming_norm = torch.linalg.vector_norm(_plain(grad)) if entry.had_grad else None
            if alive.vectors is not None:
                entry.vector = grad.detach().clone()

    return hook


def _after_adding(provenance: weakref.ref[Provenance], entry: ParameterHistory) -> Callable[[Tensor], None]:
    def hook(param: Tensor) -> None:
        alive = provenance()
        grad = param.grad
        if alive is None or grad is None:
            return
        if alive._numbered != alive._pass:
            alive._number()
        entry.was_added, entry.newest = entry.had_grad, entry.incoming_norm if alive.measure else None
        entry.remember(grad)
        entry.events.append(alive._added)
        if alive.vectors is not None and entry.vector is not None:
            with outside_dispatch_modes():
                alive.vectors.append((alive.backwards, entry.vector / alive.loss_scale()))

    return hook


def _plain(grad: Tensor) -> Tensor:
    """A gradient as norms want it: dense, and without the graph that ``create_graph=True`` leaves on it."""
    grad = grad.detach()
    return grad if grad.layout is torch.strided else grad.to_dense()

"""The Ledger, which counts bytes by category while any PyTorch code runs, with real or fake tensors."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from .. import _torch
from .._process import ThreadHook, learner_threads
from .attribution import LineTracker, ModuleTracker, refuse_compiled
from .dispatch import StorageDispatchMode
from .growth import CALL, UPDATE, Growth, GrowthTracker
from .saved_tensors import find_saved, tracking_saved_tensors
from .storages import Storages, iter_tensors
from .timeline import WEIGHTS, CategoryTotals, MemoryPoint, by_category_name


class Ledger:
    """A context manager that counts the bytes of storages by category while any PyTorch code runs in its block.

    After ``with Ledger() as ledger: train()``, read ``current`` and ``peak`` (bytes), ``at_peak`` (category to bytes)
    and ``timeline`` (a list of at most 2,000 MemoryPoints). When the block begins, the ledger searches the process for
    living tensors and counts them. If ``model`` or ``optimizers`` is given, the ledger counts only these and ``inputs``
    instead. Entering the same ledger again continues its counts.

    Sizes are those that PyTorch requests: on CUDA, the allocator rounds sizes up and reserves more memory, and the
    temporary workspace of a kernel is not counted. Nodes of autograd's graph are not storages, so they are not counted
    either: a loop that keeps graphs with ``total += loss`` shows the same bytes as a loop that does not. Work on other
    threads is counted only on autograd's own threads. Raises TypeError for arguments of the wrong type, and
    RuntimeError for a compiled model or if the ledger would have to search while other threads run the user's code.
    """

    def __init__(
        self, model: nn.Module | None = None, optimizers: Iterable[torch.optim.Optimizer] = (), inputs: Any = ()
    ) -> None:
        optimizers = [optimizers] if isinstance(optimizers, torch.optim.Optimizer) else optimizers
        optimizers = list(optimizers) if isinstance(optimizers, Iterable) else [optimizers]
        if model is not None and not isinstance(model, nn.Module):
            raise TypeError(f"Ledger: model must be a torch.nn.Module, got {model!r}")
        for module in model.modules() if model is not None else ():
            refuse_compiled(module)
        for optimizer in optimizers:
            if not isinstance(optimizer, torch.optim.Optimizer):
                raise TypeError(f"Ledger: optimizers must be torch.optim.Optimizer, got {optimizer!r}")
        if not isinstance(inputs, (Tensor, dict, list, tuple)):
            raise TypeError(f"Ledger: inputs must be tensors, alone or in lists, tuples or dicts, got {inputs!r}")
        self._arguments: tuple[nn.Module | None, list[torch.optim.Optimizer], Any] | None = (model, optimizers, inputs)
        self._search = model is None and not optimizers
        self._lines = LineTracker()
        self._storages = Storages(self._lines)
        self._modules = ModuleTracker(self._called, self._storages.mark_output)
        self._growth = GrowthTracker(self._storages)
        self._counting = StorageDispatchMode(self._storages, self._modules, lambda: self.current_statement())
        self._depth = 0
        self._open = ExitStack()
        self.current_statement: Callable[[], str] = self._lines.now
        """A function that returns the current statement's label; a caller that runs single statements replaces it."""

    def __enter__(self) -> Ledger:
        if self._depth:
            self._depth += 1
            return self
        self._lines.root_frame = sys._getframe(1)
        if self._arguments is not None:
            if self._search and (others := learner_threads()):
                raise RuntimeError(
                    f"Ledger: thread {others[0]!r} is also running your code, so it is not safe to search this process "
                    "for models and tensors; pass them instead, as in Ledger(model, optimizers, inputs)"
                )
            self._begin(*self._arguments)
            self._arguments = None
        self._storages.pause(paused=False)
        with ExitStack() as stack:
            stack.enter_context(tracking_saved_tensors(self._storages))
            for handle in (*self._modules.hooks(self._counting.is_on), *self._hooks()):
                stack.callback(handle.remove)
            stack.enter_context(self._counting)
            self._open = stack.pop_all()
        self._depth = 1
        return self

    def __exit__(self, *error: object) -> None:
        """End the counting with the outermost block. Memory freed later changes ``current``, but not ``timeline``."""
        self._depth -= 1
        if self._depth == 0:
            self._open.close()
            self._lines.root_frame = None
            self._modules.forget()
            self._counting.flush_pending_grad()
            self._storages.refresh_gradients()
            self._storages.pause(paused=True)

    @property
    def device(self) -> str:
        """The device type that all counts refer to: an accelerator such as "cuda" if it held any bytes, else "cpu"."""
        devices = self._storages.totals_by_device.items()
        return next((name for name, totals in devices if name not in ("cpu", "meta") and totals.peak), "cpu")

    @property
    def current(self) -> int:
        """The number of bytes that living storages on ``device`` have now."""
        return self._totals.total

    @property
    def by_category(self) -> dict[str, int]:
        """The number of bytes that living storages on ``device`` have now, as a dict by category."""
        self._storages.refresh_gradients()
        return by_category_name(self._totals.now)

    @property
    def peak(self) -> int:
        """The largest number of bytes alive at any one time."""
        return self._totals.peak

    @property
    def at_peak(self) -> dict[str, int]:
        """The number of bytes in each category at the moment of the peak, as a dict."""
        return self._totals.peak_at.high

    @property
    def peak_at(self) -> MemoryPoint:
        """The interval in which memory reached its peak, with the statement and module that ran."""
        return self._totals.peak_at

    @property
    def timeline(self) -> list[MemoryPoint]:
        """The intervals in which one statement ran in one module, the oldest first, merged if there are too many."""
        self._storages.refresh_gradients()
        return self._totals.points()

    def growth(self) -> Growth:
        """Return the growth of memory from update to update, by line and module, which ``print`` shows as a table.

        An update ends with ``optimizer.step()``; if no optimizer steps, each call to the model counts as an update.
        Snapshots are taken at the ends of updates 1, 2, 3, 4, 6, 9, 13 and so on. Each snapshot holds the living
        storages that an earlier update created, grouped by line, module and category. The newest three snapshots are
        compared: a group has grown if the second contains more storages of the group than the first, and the third more
        than the second. The growth is the increase in bytes from the second to the third. Weights, optimizer state,
        gradients, a list of fixed length, a full cache and a tensor replaced with a larger one do not count as growth.
        """
        return self._growth.growth(self._totals, self._lines.describe)

    def mark(self, statement: str) -> None:
        """Label all intervals since the previous ``mark`` with ``statement``, the name of the statement that ran."""
        self._counting.flush_pending_grad()
        self._storages.refresh_gradients()
        for totals in self._storages.totals_by_device.values():
            totals.label_statement(statement)
        self._storages.begin_interval("", "", anew=True)

    def forget(self) -> None:
        """Restart the timeline, the peak and the growth, but keep counting the storages that are alive."""
        self._growth.forget()
        for totals in self._storages.totals_by_device.values():
            totals.forget()

    def __repr__(self) -> str:
        rows = "".join(f"\n  {name:12}{size:>16,}" for name, size in self.at_peak.items())
        peak = self.peak_at
        where = " in ".join(part for part in (peak.statement, peak.module) if part)
        text = f"Ledger ({self.device}): {self.current:,} bytes now, {self.peak:,} at the peak ({where}){rows}"
        growth = self.growth()
        gaps = (f"  not available: {gap}" for gap in _torch.missing("memory"))
        return "\n".join([text, *([str(growth)] if growth.rows else []), *gaps])

    @property
    def _totals(self) -> CategoryTotals:
        return self._storages._totals(self.device)

    def _begin(self, model: nn.Module | None, optimizers: list[torch.optim.Optimizer], inputs: Any) -> None:
        if model is not None:
            self._weights(model)
        for optimizer in optimizers:
            self._storages.mark_optimizer_state(optimizer)
        for tensor in iter_tensors(inputs):
            self._storages.mark_input(tensor)
        if self._search:
            self._find()
        self._storages.refresh_gradients()
        self.forget()

    def _find(self) -> None:
        """Count the storages of all modules, optimizers and tensors in the process, and of tensors that graphs save."""
        fake = any(isinstance(mode, _torch.FakeTensorMode) for mode in _torch.dispatch_mode_stack())

        def ours(parameters: Iterable[Tensor]) -> bool:
            return all(isinstance(parameter, _torch.FakeTensor) == fake for parameter in parameters)

        alive = gc.get_objects()
        graphs: list[Any] = []
        for thing in alive:
            # type() is used because isinstance() resolves proxies. A module without _parameters is not initialised yet.
            if issubclass(type(thing), nn.Module) and "_parameters" in vars(thing) and ours(thing.parameters()):
                self._weights(thing)
        for thing in alive:
            if issubclass(type(thing), torch.optim.Optimizer) and "param_groups" in vars(thing):
                if ours(parameter for group in thing.param_groups for parameter in group["params"]):
                    self._storages.mark_optimizer_state(thing)
            elif issubclass(type(thing), Tensor) and ours([thing]):
                entries = self._storages.track(thing, preexisting=True)
                if thing.requires_grad and thing.is_leaf:
                    self._storages.mark_weight(thing)
                elif thing.requires_grad:
                    graphs.append(thing.grad_fn)
                    for entry in entries:
                        entry.computed = True
        find_saved(graphs, self._storages, lambda tensor: ours([tensor]))

    def _weights(self, module: nn.Module) -> None:
        for tensor in (*module.parameters(), *module.buffers()):
            self._storages.mark_weight(tensor)

    def _called(self, module: nn.Module, inputs: tuple[Any, ...]) -> None:
        self._tick(CALL)
        self._weights(module)
        for tensor in iter_tensors(inputs):
            if not tensor.requires_grad:
                self._storages.mark_input(tensor)

    def _tick(self, unit: str) -> None:
        if _torch.current_autograd_node() is None:  # backward, which may rerun modules or step in hooks, has no ticks
            self._lines.now()
            self._growth.tick(unit, self._lines.innermost)

    def _hooks(self) -> list[ThreadHook]:
        def registered(_: nn.Module, name: str, tensor: Tensor | None) -> None:
            if tensor is not None:
                self._storages.set_category(tensor, WEIGHTS)

        def stepped(optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:
            self._storages.mark_optimizer_state(optimizer)

        def updated(optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:
            stepped(optimizer, args, kwargs)
            self._tick(UPDATE)

        return [
            ThreadHook(registered, "parameter_registration_hooks", "buffer_registration_hooks"),
            ThreadHook(stepped, "optimizer_pre_hooks", in_backward=self._counting.is_on),
            ThreadHook(updated, "optimizer_post_hooks", in_backward=self._counting.is_on),
        ]

"""StorageDispatchMode, which sees each PyTorch operation below autograd and tracks the storages that it uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import _torch
from .._process import DispatchMode
from .attribution import ModuleTracker
from .storages import Storages, is_wrapping, iter_tensors
from .timeline import ACTIVATIONS, INPUTS, OTHER, WEIGHTS


class StorageDispatchMode(DispatchMode):
    """Dispatch mode that tracks in ``storages`` the inputs and outputs of every operation, by statement and module."""

    def __init__(self, storages: Storages, modules: ModuleTracker, statement: Callable[[], str]) -> None:
        super().__init__()
        self._storages, self._modules, self._statement = storages, modules, statement
        self._pending: Tensor | None = None  # the leaf whose .grad AccumulateGrad is setting, if any

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.prim.device.default:  # fake tensors call this operation very often
            return func(*args)
        storages, kwargs = self._storages, kwargs or {}
        self.flush_pending_grad()
        node = _torch.current_autograd_node()
        module, statement = self._modules.now(node), self._statement()
        if module != storages.module or statement != storages.statement:
            if statement != storages.statement:
                storages.refresh_gradients()
            storages.begin_interval(statement, module)
        arguments = list(iter_tensors((args, kwargs)))
        for tensor in arguments:
            self._read(tensor, func, node)
        result = func(*args, **kwargs)
        moved = func is torch.ops.aten._to_copy.default and not arguments[0].requires_grad  # batch.to(device)
        moved = moved and all(entry.base == INPUTS for entry in storages.track(arguments[0]))
        for tensor in iter_tensors(result):
            storages.track(tensor, INPUTS if moved and tensor.device != arguments[0].device else OTHER)
        if node is not None and node.name() == _torch.ACCUMULATE_GRAD:
            self._pending = node.variable  # only AccumulateGrad nodes have this attribute
        return result

    def is_on(self) -> bool:
        """Return whether this mode is active on the current thread, which may be an autograd thread."""
        return self in _torch.dispatch_mode_stack()

    def flush_pending_grad(self) -> None:
        """Track the ``.grad`` of the leaf, if any, whose gradient AccumulateGrad was setting at the last operation."""
        if self._pending is not None:
            leaf, self._pending = self._pending, None
            self._storages.watch_leaf(leaf)

    def _read(self, tensor: Tensor, func: Any, node: Any) -> None:
        """Track ``tensor``, an input of the operation ``func``, in a category that suits how the tensor is used."""
        # Autograd asks a wrapper tensor (torch.nested) for its size while holding a lock that ``is_leaf`` also needs.
        wanting = tensor.requires_grad and not is_wrapping(tensor)
        computed = wanting and not tensor.is_leaf
        leaf = wanting and not computed
        if node is not None:  # a tensor first read in backward was saved by the graph before the ledger began
            base = WEIGHTS if leaf else ACTIVATIONS
        else:
            base = WEIGHTS if leaf else OTHER if computed or func._schema.is_mutable else INPUTS
        for entry in self._storages.track(tensor, base):
            if computed:
                entry.computed = True
            elif entry.preexisting and entry.base == OTHER and not leaf and not func._schema.is_mutable:
                self._storages.mark_input(tensor)

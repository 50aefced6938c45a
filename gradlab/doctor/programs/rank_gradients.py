"""What the ranks of a distributed training should share: the gradients of a model in DistributedDataParallel."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from ... import _torch
from ..monkeypatch import Below, MonkeyPatches


class RankGradients:
    """Keeps the norm of those gradients at updates 1, 2, 4, 8, ..., for a comparison with other ranks."""

    def __init__(self) -> None:
        """Start with none."""
        self.norms: dict[str, float] = {}
        """Number of an update -> norm."""
        self._wrapped: WeakSet[DistributedDataParallel] = WeakSet()
        self._patches = MonkeyPatches()
        self._handle: Any = None
        self._steps = 0

    def start(self) -> None:
        """Wait for a model that is wrapped; without one nothing is looked at."""
        self._patches.replace(DistributedDataParallel, "__init__", self._init)

    def stop(self) -> None:
        """Put everything back."""
        self._patches.undo()
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _init(self, below: Below) -> Any:
        def init(wrapper: DistributedDataParallel, *args: Any, **kwargs: Any) -> None:
            below.call(wrapper, *args, **kwargs)
            self._wrapped.add(wrapper)
            if self._handle is None:
                self._handle = register_optimizer_step_pre_hook(self._before_step)

        return init

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        self._steps += 1
        if self._steps & (self._steps - 1) == 0:
            try:
                self._measure(optimizer)
            except Exception:  # no failure of ours may reach the learner's loop
                self._steps = -1 << 62

    def _measure(self, optimizer: Optimizer) -> None:
        shared = {id(param) for wrapper in self._wrapped for param in wrapper.module.parameters()}
        params = [param for group in optimizer.param_groups for param in group["params"] if id(param) in shared]
        grads = [param.grad.detach() for param in params if param.grad is not None and not param.grad.is_sparse]
        if not grads:
            return
        with _torch.outside_dispatch_modes():
            norms = [torch.linalg.vector_norm(grad, dtype=torch.float64).cpu() for grad in grads]
            self.norms[str(self._steps)] = float(torch.linalg.vector_norm(torch.stack(norms)))

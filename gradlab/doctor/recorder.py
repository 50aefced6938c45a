"""The recorder: stands between the learner's loop and PyTorch, and writes down what happens."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from .clerk import NO_THREAD
from .hearing.backward import Backwards
from .hearing.clipping import Clippings
from .hearing.modules import Modules
from .hearing.optimizers import Optimizers
from .hearing.scaling import Scalings
from .patches import Patches, carefully


class Recorder(Backwards, Optimizers, Clippings, Scalings, Modules):
    """Writes events and hands them on in batches; ``start()`` and ``stop()`` put PyTorch's names out and back."""

    def __init__(self, judge: Callable[[list[Any]], None]) -> None:
        """``judge(events)`` gets the events, in order, some hundred at a time."""
        super().__init__(judge)
        self._patches = Patches()
        self._handles: list[Any] = []

    def start(self) -> None:
        """Begin to listen, to the thread that calls this."""
        self._thread = NO_THREAD if self.trouble else threading.get_ident()
        put = self._patches.replace
        put(torch.autograd, "_engine_run_backward", self._run_backward)
        put(torch.autograd, "_make_grads", self._make_grads)
        put(nn.Module, "__call__", self._call)
        put(nn.Module, "zero_grad", self._module_zero_grad)
        put(nn.Module, "train", self._train)
        put(Optimizer, "__init__", self._optimizer_init)
        put(Optimizer, "zero_grad", self._zero_grad)
        clipping = sys.modules["torch.nn.utils.clip_grad"]
        put(clipping, "_clip_grads_with_norm_", self._clip)
        put(clipping, "_group_tensors_by_device_and_dtype", self._clip_value)
        scaler = torch.amp.GradScaler
        put(scaler, "scale", self._scale)
        put(scaler, "unscale_", self._unscale)
        put(scaler, "step", self._scaler_step)
        put(scaler, "update", self._scaler_update)
        for kind in _with_subclasses(LRScheduler, ReduceLROnPlateau):
            # LRScheduler.step itself says whose line is to blame for a warning: no frame may come between.
            put(kind, "_update_lr" if kind is LRScheduler and hasattr(kind, "_update_lr") else "step", self._schedule)
        self._handles = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
            register_module_parameter_registration_hook(self._registered),
        ]

    def stop(self) -> None:
        """Put everything back, and hand on what is left."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._patches.undo()
        self._thread = NO_THREAD  # whoever has kept one of our functions gets what it stands for, and no more
        self._finish()

    @carefully
    def _finish(self) -> None:
        self._scan()
        self.flush()


def _with_subclasses(*kinds: type) -> set[type]:
    found = set(kinds)
    for kind in kinds:
        found |= _with_subclasses(*kind.__subclasses__()) if kind.__subclasses__() else set()
    return found

"""The listener for GradScalers and for gradient clipping."""

from __future__ import annotations

import math
import sys
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer

from ... import _torch
from ..._process import Original, Patches
from ..events import Clip, ScalerStep, ScalerUpdate, Unscale
from ..frames import call_site, outside_doctor
from ..graphs.autograd_graph import mark_scaled
from .event_log import Listener, never_raises


class ScalingListener(Listener):
    """Watches GradScaler, and the functions that clip functions call, since clip functions may be imported by name."""

    def patch(self, patches: Patches) -> None:
        """Replace methods of ``GradScaler``, and functions that ``clip_grad_norm_`` and ``clip_grad_value_`` call."""
        scaler = torch.amp.GradScaler
        patches.replace(scaler, "scale", self.around(after=self._scaled))
        patches.replace(scaler, "unscale_", self.around(self._before_unscale, self._after_unscale))
        patches.replace(scaler, "step", self._step)
        patches.replace(scaler, "update", self.around(after=self._updated))
        patches.replace(*_torch.locate("clip_grads_with_norm"), self._clip_norm)
        patches.replace(*_torch.locate("group_tensors"), self.around(self._before_grouping))

    def _scaled(self, result: Any, scaler: Any, *args: Any, **kwargs: Any) -> None:
        if not scaler.is_enabled():
            return
        self.log.scales = True
        # A generator is left alone, because iterating over it would take its items away from the learner's loop.
        for tensor in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(tensor, Tensor):
                mark_scaled(tensor)

    @never_raises
    def _before_unscale(self, scaler: Any, optimizer: Optimizer) -> None:
        if scaler.is_enabled():
            self.log.detect_changes(self.log.optimizer(optimizer).params)

    def _after_unscale(self, result: None, scaler: Any, optimizer: Optimizer) -> None:
        if scaler.is_enabled():
            params = self.log.optimizer(optimizer).params
            self.log.index.changes(params)
            self.log.emit(Unscale(params))

    def _step(self, original: Original) -> Any:
        log = self.log

        def step(scaler: Any, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
            if not scaler.is_enabled() or not log.is_watched_thread():
                return original.call(scaler, optimizer, *args, **kwargs)
            before = log.steps
            log.scaler_steps += 1
            try:
                self._before_unscale(scaler, optimizer)
                result = original.call(scaler, optimizer, *args, **kwargs)
            finally:
                log.scaler_steps -= 1
            self._stepped(scaler, optimizer, taken=log.steps > before)
            return result

        return step

    @never_raises
    def _stepped(self, scaler: Any, optimizer: Optimizer, *, taken: bool) -> None:
        watched = self.log.optimizer(optimizer)
        self.log.scaler_site = site = call_site()
        self.log.emit(ScalerStep(site, watched.number, watched.params, taken, id(scaler)))

    def _updated(self, result: None, scaler: Any, *args: Any, **kwargs: Any) -> None:
        self.log.emit(ScalerUpdate(id(scaler)))

    def _clip_norm(self, original: Original) -> Any:
        log = self.log

        def clip(parameters: Any, max_norm: float, *args: Any, **kwargs: Any) -> None:
            tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            if not log.is_watched_thread():
                return original.call(tensors, max_norm, *args, **kwargs)
            self._before_norm(tensors, measures=max_norm == math.inf)
            result = original.call(tensors, max_norm, *args, **kwargs)
            self._after_norm(tensors)
            return result

        return clip

    @never_raises
    def _before_norm(self, tensors: list[Any], *, measures: bool) -> None:
        params = self.log.index.bits(p for p in tensors if isinstance(p, Tensor) and p.is_leaf)
        self.log.detect_changes(params)
        self.log.emit(Clip(site := call_site(), params, measures=measures, empty=not tensors))
        self.log.note_callers(site)

    @never_raises
    def _after_norm(self, tensors: list[Any]) -> None:
        self.log.index.changes(self.log.index.known_bits(tensors))

    def _before_grouping(self, lists: Any, *rest: Any, **kwargs: Any) -> None:
        if outside_doctor(sys._getframe(1)).f_code.co_name != "clip_grad_value_":
            return
        params = self.log.index.owning_grads(lists[0])
        self.log.detect_changes(params)
        self.log.index.expected_changes |= params
        self.log.emit(Clip(call_site(), params, measures=False))

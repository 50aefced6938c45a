"""Scalers and schedulers."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from torch import Tensor
from torch.optim.optimizer import Optimizer

from .. import graphs
from ..clerk import Clerk
from ..events import ScalerStep, ScalerUpdate, Schedule, Unscale
from ..patches import carefully
from ..sites import rank, site


class Scalings(Clerk):
    """Listens to ``GradScaler`` and to learning-rate schedulers."""

    def _scale(self, original: Any) -> Any:
        def scale(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            if scaler.is_enabled() and self._mine():
                self._scaling = True
                for one in (
                    [result] if isinstance(result, Tensor) else [one for one in result if isinstance(one, Tensor)]
                ):
                    graphs.mark_scaled(one)
            return result

        return scale

    def _unscale(self, original: Any) -> Any:
        def unscale_(scaler: Any, optimizer: Optimizer) -> None:
            if scaler.is_enabled() and self._mine():
                self._unscaling(optimizer)
                original(scaler, optimizer)
                self._unscaled(optimizer)
            else:
                original(scaler, optimizer)

        return unscale_

    @carefully
    def _unscaling(self, optimizer: Optimizer) -> None:
        self._scan(self._cover(optimizer))

    @carefully
    def _unscaled(self, optimizer: Optimizer) -> None:
        pages = self._cover(optimizer)
        self.pages.look(pages)
        self._emit(Unscale(pages))

    def _scaler_step(self, original: Any) -> Any:
        def step(scaler: Any, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
            if not scaler.is_enabled() or not self._mine():
                return original(scaler, optimizer, *args, **kwargs)
            before = self._steps
            self._in_scaler += 1
            try:
                self._unscaling(optimizer)
                result = original(scaler, optimizer, *args, **kwargs)
            finally:
                self._in_scaler -= 1
            self._scaler_stepped(scaler, optimizer, taken=self._steps > before)
            return result

        return step

    @carefully
    def _scaler_stepped(self, scaler: Any, optimizer: Optimizer, *, taken: bool) -> None:
        index = self.optimizer(optimizer)
        self.scaler_step = site()
        self._emit(ScalerStep(self.scaler_step, index, self._cover(optimizer), taken, id(scaler)))
        self._rest()

    def _scaler_update(self, original: Any) -> Any:
        def update(scaler: Any, *args: Any, **kwargs: Any) -> None:
            original(scaler, *args, **kwargs)
            if self._mine():
                self._emit(ScalerUpdate(id(scaler)))

        return update

    def _schedule(self, original: Any) -> Any:
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if self._in_schedule or not self._mine() or _initial(sys._getframe(1)):
                return original(scheduler, *args, **kwargs)
            self._in_schedule = True
            try:
                return original(scheduler, *args, **kwargs)
            finally:
                self._in_schedule = False
                self._scheduled(scheduler)

        return step

    @carefully
    def _scheduled(self, scheduler: Any) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        if isinstance(optimizer, Optimizer):
            self._emit(Schedule(site(), id(scheduler), self.optimizer(optimizer)))
            self._rest()


def _initial(frame: FrameType | None) -> bool:
    """Is a scheduler's step the one that it takes when it is made?"""
    for _ in range(4):
        if frame is None or rank(frame.f_code.co_filename):
            break
        if frame.f_code.co_name in ("_initial_step", "__init__"):
            return True
        frame = frame.f_back
    return False

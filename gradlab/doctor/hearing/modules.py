"""Modules: the calls of the learner's own code, in which mode, and new parameters."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor, nn

from ..clerk import Clerk
from ..events import NOWHERE, Forward, Mode
from ..patches import carefully
from ..sites import learner, outside, rank, site

_SMALL = 1_000_000  # elements


class Modules(Clerk):
    """Listens to modules that are called from outside of any other."""

    def _call(self, original: Any) -> Any:
        compiling = torch.compiler.is_compiling

        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if self._depth or compiling() or not self._mine():
                return original(module, *args, **kwargs)
            self._depth = 1
            try:
                self._emit_forward(module, args)
                result = original(module, *args, **kwargs)
                if isinstance(result, Tensor) and result.grad_fn is not None:
                    self._outputs.add(result.grad_fn, self._backwards)
                return result
            finally:
                self._depth = 0

        return call

    @carefully
    def _emit_forward(self, module: nn.Module, args: Any) -> None:
        model = self.models.see(module)
        if model.pages or model.sensitive:
            where = outside(sys._getframe(1))
            frame = learner(where)
            place = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else NOWHERE
            grad = torch.is_grad_enabled()
            moody, calm = model.moods()
            first = self._serial(args[0] if args else None) if moody and not grad else 0  # nobody else asks
            caller = frame.f_code.co_name if frame is not None else ""
            again = rank(where.f_code.co_filename) == 0
            self._emit(
                Forward(place, id(module), module.training, grad, moody, calm, first, caller, model.pages, again=again)
            )

    def _serial(self, argument: Any) -> int:
        """Return a number for a tensor, or for its values; ids are given out again when a tensor is gone."""
        if isinstance(argument, Tensor) and argument.device.type == "cpu" and argument.numel() < _SMALL:
            return hash((argument.shape, float(argument.detach().double().abs().sum())))
        number = self._serials.get(argument) if isinstance(argument, Tensor) else None
        if number is None:
            self._serial_count += 1
            number = self._serial_count
            if isinstance(argument, Tensor):
                self._serials[argument] = number
        return number

    def _train(self, original: Any) -> Any:
        def train(module: nn.Module, mode: bool = True) -> nn.Module:
            if self._depth or not self._mine():
                return original(module, mode)
            self._depth = 1  # the modules inside are not called by the learner
            try:
                return original(module, mode)
            finally:
                self._depth = 0
                self._turned(module, mode)

        return train

    @carefully
    def _turned(self, module: nn.Module, mode: bool) -> None:
        self._emit(Mode(site(), id(module), bool(mode)))

    @carefully
    def _registered(self, module: nn.Module, name: str, param: Any) -> None:
        if isinstance(param, Tensor) and self._mine() and self._registrations.get(param) is None:
            self._registrations[param] = len(self.optimizers)

"""Modules: the calls of the learner's own code, in which mode, and new parameters."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from ..._frames import Owner, code_owner, user_frame
from ..._process import Original, Patches, ThreadHook
from ..events import NO_SITE, Forward, Mode
from ..frames import call_lines, call_site, outside_constructors, outside_doctor
from .event_log import EventLog
from .listener import Listener, never_raises

_SMALL = 1_000_000  # elements
_COMPILED = str(Path(torch.__file__).parent / "_dynamo" / "eval_frame.py")


class ModuleListener(Listener):
    """Listens to modules that are called from outside of any other."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self._inside = False
        self._serials: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._numbers = count(1)

    def patch(self, patches: Patches) -> None:
        """Replace methods of all modules."""
        patches.replace(nn.Module, "__call__", self._call)
        patches.replace(torch, "compile", self._compile)
        patches.replace(nn.Module, "train", self._train)
        patches.replace(nn.Module, "zero_grad", self.after(self._cleared))

    def hooks(self) -> list[Any]:
        """Hear of new parameters."""
        kinds = "parameter_registration_hooks", "module_registration_hooks"
        return [ThreadHook(self._registered, *kinds, every_thread=True)]

    def _compile(self, original: Original) -> Any:
        def compile_it(*args: Any, **kwargs: Any) -> Any:
            self.log.trace.remove()  # what is compiled beside a mode would be compiled again without it
            return original.call(*args, **kwargs)

        return compile_it

    def _call(self, original: Original) -> Any:
        compiling = torch.compiler.is_compiling
        log, passes = self.log, self.log.passes

        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if self._inside or compiling() or not log.is_watched_thread():
                return original.call(module, *args, **kwargs)
            self._inside, trace = True, log.trace
            trace.busy = quiet = not torch.is_grad_enabled()
            try:
                uses = passes.unused_graphs.uses
                forward = self._emit_forward(module, args, kwargs)
                result = original.call(module, *args, **kwargs)
                # where something has gone back through a graph inside, forward() itself needs gradients
                if forward is not None and forward.grad and not forward.training and uses == passes.unused_graphs.uses:
                    self._evaluated(forward, result)
                if isinstance(result, Tensor) and result.grad_fn is not None:
                    passes.outputs.add(result.grad_fn, passes.count)
                if quiet and trace.on and forward is not None:
                    trace.module_result(result, (args, kwargs), forward.params)
                return result
            finally:
                self._inside = trace.busy = False

        return call

    @never_raises
    def _emit_forward(self, module: nn.Module, args: Any, kwargs: Any) -> Forward | None:
        model = self.log.models.see(module)
        if not model.params and not model.sensitive:
            return None
        where = outside_doctor(sys._getframe(1))
        while where.f_code.co_filename == _COMPILED and where.f_back is not None:  # torch.compile's own __call__
            where = outside_doctor(where.f_back)
        frame = user_frame(where)
        train_kind, eval_kind = model.mode_kinds()
        forward = Forward(
            site=(frame.f_code.co_filename, frame.f_lineno) if frame is not None else NO_SITE,
            module=id(module),
            training=module.training,
            grad=torch.is_grad_enabled(),
            train_kind=train_kind,
            eval_kind=eval_kind,
            params=model.params,
            caller=frame.f_code.co_name if frame is not None else "",
            again=code_owner(where.f_code.co_filename) is Owner.OURS,
            fed=_requires_grad((args, kwargs)),
        )
        if train_kind and not forward.grad:  # no other rule asks
            forward.first = self._serial(args[0] if args else None)
        self.log.note_callers(forward.site)
        self.log.emit(forward)
        return forward

    @never_raises
    def _evaluated(self, forward: Forward, result: Any) -> None:
        if not forward.again:
            self.log.passes.unused_graphs.built(result, call_lines(sys._getframe(3)))

    def _serial(self, argument: Any) -> int:
        """Return a number for a tensor, or for its values; ids are given out again when a tensor is gone."""
        if isinstance(argument, Tensor) and argument.device.type == "cpu" and argument.numel() < _SMALL:
            return hash((argument.shape, float(argument.detach().double().abs().sum())))
        number = next(self._numbers)
        return int(self._serials.setdefault(argument, number)) if isinstance(argument, Tensor) else number

    def _train(self, original: Original) -> Any:
        def train(module: nn.Module, mode: bool = True) -> nn.Module:
            if self._inside or not self.log.is_watched_thread():
                return original.call(module, mode)
            self._inside = True  # the modules inside are not called by the learner
            try:
                return original.call(module, mode)
            finally:
                self._inside = False
                self._turned(module, mode)

        return train

    @never_raises
    def _turned(self, module: nn.Module, mode: bool) -> None:
        self.log.note_callers(site := call_site())
        self.log.emit(Mode(site, id(module), bool(mode)))

    @never_raises
    def _cleared(self, module: nn.Module, result: None) -> None:
        self.log.cleared(call_site(3), self.log.index.bits(module.parameters()))

    @never_raises
    def _registered(self, module: nn.Module, name: str, part: Any) -> None:
        again = isinstance(part, nn.Module)  # a part of a model is exchanged, perhaps
        if (self.log.optimizers or not again) and self.log.is_watched_thread():
            for param in part.parameters() if again else [part]:
                if isinstance(param, Tensor):
                    site = outside_constructors(sys._getframe(2))
                    self.log.models.register(param, site, len(self.log.optimizers), again=again)


def _requires_grad(value: Any) -> bool:
    """Return whether a tensor requires a gradient, or one in a list, tuple or dictionary."""
    if isinstance(value, Tensor):
        return value.requires_grad
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return any(_requires_grad(one) for one in inner)

"""Modules: the calls of the learner's own code, in which mode, and new parameters."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from ..._frames import Owner, code_owner, user_frame, variables
from ..._process import Original, Patches, ThreadHook
from ..events import NO_SITE, Forward, Mode, Site
from ..frames import call_lines, call_site, outside_constructors, outside_doctor
from ..graphs.op_trace import flat
from ..state.watched import UncopiedLoad
from .event_log import EventLog, Listener, never_raises

_FEW = 64  # calls of a module, to see whether it is given what others have made
_SMALL = 1_000_000  # elements
_MOST_LINES = 512
_COMPILED = str(Path(torch.__file__).parent / "_dynamo" / "eval_frame.py")


class ModuleListener(Listener):
    """Listens to modules that are called from outside of any other."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self._serials: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._numbers = count(1)
        self._states: WeakIdKeyDictionary = WeakIdKeyDictionary()  # tensor of a state_dict() -> version, steps, line
        self._named: set[tuple[int, Site]] = set()

    def patch(self, patches: Patches) -> None:
        """Replace methods of all modules."""
        patches.replace(nn.Module, "__call__", self._call)
        patches.replace(torch, "compile", self.around(self._before_compile, anywhere=True))
        patches.replace(nn.Module, "train", self.outermost(self._turned))
        patches.replace(nn.Module, "zero_grad", self.around(after=self._cleared))
        for kind in (nn.Module, Optimizer):
            patches.replace(kind, "state_dict", self.around(after=self._note_state))
            patches.replace(kind, "load_state_dict", self.around(self._before_load))

    def hooks(self) -> list[Any]:
        """Hear of new parameters."""
        kinds = "parameter_registration_hooks", "module_registration_hooks"
        return [ThreadHook(self._registered, *kinds, every_thread=True)]

    def _before_compile(self, *given: Any, **named: Any) -> None:
        self.log.trace.remove()  # what is compiled beside a mode would be compiled again without it

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
            fed=model.calls <= _FEW and any(getattr(one, "requires_grad", False) for one in flat((args, kwargs))),
        )
        if module.training:
            forward.frozen_norms = model.frozen_norms
        elif model.dropouts:
            forward.dropouts = model.dropouts_in_eval()
        key = id(module), forward.site
        if frame is not None and key not in self._named and len(self._named) < _MOST_LINES:
            self._named.add(key)
            forward.names = _names(module, frame)
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

    @never_raises
    def _turned(self, module: nn.Module, seen: None, mode: bool = True) -> None:
        rested = self.log.models.rested
        rested.pop(module, None) if mode else rested.setdefault(module, True)
        self.log.note_callers(site := call_site())
        self.log.emit(Mode(site, id(module), bool(mode)))

    def _cleared(self, result: None, module: nn.Module, *given: Any, **named: Any) -> None:
        self.log.cleared(call_site(3), self.log.index.bits(module.parameters()))

    def _note_state(self, state: Any, owner: Any, *given: Any, destination: Any = None, **named: Any) -> None:
        if given or destination is not None:  # of a part
            return
        site = call_site()
        for tensor in _plain_tensors(state):
            self._states[tensor] = tensor._version, self.log.steps, site

    def _before_load(self, owner: Any, state_dict: Any, *rest: Any, **named: Any) -> None:
        """Look whether all that is loaded lies where the object's own tensors are, and was written to since."""
        given, log = list(_plain_tensors(state_dict)), self.log
        known = [self._states.get(tensor) for tensor in given]
        optimizes = isinstance(owner, Optimizer)
        parts = (owner.state, owner.param_groups) if optimizes else (*owner.parameters(), *owner.buffers())
        own = {tensor.data_ptr() for tensor in _plain_tensors(parts)}
        if not given or None in known or any(tensor.data_ptr() not in own for tensor in given):
            return
        for tensor, (version, steps, made) in zip(given, known, strict=True):
            if tensor._version > version and log.steps > steps:
                load = log.models.uncopied.setdefault(call_site(), UncopiedLoad(type(owner).__name__, made))
                load.times, load.steps = load.times + 1, log.steps - steps
                break
        for tensor, (*_, made) in zip(given, known, strict=True):
            self._states[tensor] = tensor._version + 1, log.steps, made  # loading writes to it once

    @never_raises
    def _registered(self, module: nn.Module, name: str, part: Any) -> None:
        if isinstance(part, nn.Parameter) and self.log.is_watched_thread():
            self.log.models.put(module, name, part, call_site())
        again = isinstance(part, nn.Module)  # a part of a model is exchanged, perhaps
        if (self.log.optimizers or not again) and self.log.is_watched_thread():
            for param in part.parameters() if again else [part]:
                if isinstance(param, Tensor):
                    site = outside_constructors(sys._getframe(2))
                    self.log.models.register(param, site, len(self.log.optimizers), again=again)


def _plain_tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors with elements of their own in lists and dictionaries in one another."""
    for one in flat(value):
        if type(one) in (Tensor, nn.Parameter) and one.numel() and not (one.is_meta or one.is_inference()):
            yield one


def _names(module: nn.Module, frame: FrameType) -> tuple[str, ...]:
    """Return the variables of a function, and the attributes of its ``self``, that are a module."""
    local = variables(frame)
    owner = local.get("self")
    inside = {**getattr(owner, "__dict__", {}), **getattr(owner, "_modules", {})}
    used = {name: frame.f_globals[name] for name in frame.f_code.co_names if name in frame.f_globals}
    named = {**used, **local, **{f"self.{name}": value for name, value in inside.items()}}
    return tuple(name for name, value in named.items() if value is module)

"""The listener for modules, and for the state dicts of modules and optimizers."""

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
from ..graphs.autograd_graph import grad_fn_of
from ..graphs.op_trace import flat
from ..state.watched import UncopiedLoad
from .event_log import EventLog, Listener, never_raises

_CHECKED = 64  # number of first calls to a module whose arguments are checked for outputs of other modules
_MOST_HASHED_ELEMENTS = 1_000_000
_MOST_LINES = 512
_COMPILED = str(Path(torch.__file__).parent / "_dynamo" / "eval_frame.py")


class ModuleListener(Listener):
    """Listens for the learner's outermost calls to modules, train(), zero_grad(), state dicts and new parameters."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self._serials: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._numbers = count(1)
        self._states: WeakIdKeyDictionary = WeakIdKeyDictionary()
        """Tensor of a state_dict() -> its version and the number of steps at the call, and the line of the call."""
        self._named: set[tuple[int, Site]] = set()

    def patch(self, patches: Patches) -> None:
        """Replace methods of modules and optimizers, and ``torch.compile``."""
        patches.replace(nn.Module, "__call__", self._call)
        patches.replace(torch, "compile", self.around(self._before_compile, anywhere=True))
        patches.replace(nn.Module, "train", self.outermost(self._mode_set))
        patches.replace(nn.Module, "zero_grad", self.around(after=self._cleared))
        for kind in (nn.Module, Optimizer):
            patches.replace(kind, "state_dict", self.around(after=self._note_state))
            patches.replace(kind, "load_state_dict", self.around(self._before_load))

    def hooks(self) -> list[Any]:
        """Register hooks for new parameters and submodules."""
        kinds = "parameter_registration_hooks", "module_registration_hooks"
        return [ThreadHook(self._registered, *kinds, every_thread=True)]

    def _before_compile(self, *args: Any, **kwargs: Any) -> None:
        self.log.trace.remove()  # code compiled while the mode is on would be compiled again without the mode

    def _call(self, original: Original) -> Any:
        compiling = torch.compiler.is_compiling
        log, passes = self.log, self.log.passes

        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if self._nested or compiling() or not log.is_watched_thread():
                return original.call(module, *args, **kwargs)
            self._nested, trace = True, log.trace
            trace.busy = quiet = not torch.is_grad_enabled()
            try:
                uses = passes.unused_graphs.uses
                forward = self._emit_forward(module, args, kwargs)
                result = original.call(module, *args, **kwargs)
                # If a backward pass ran during the call, forward() itself needs gradients.
                if forward is not None and forward.grad and not forward.training and uses == passes.unused_graphs.uses:
                    self._note_unused_graph(forward, result)
                if (node := grad_fn_of(result)) is not None:
                    passes.outputs.add(node, passes.count)
                if quiet and trace.on and forward is not None:
                    trace.module_result(result, (args, kwargs), forward.params)
                return result
            finally:
                self._nested = trace.busy = False

        return call

    @never_raises
    def _emit_forward(self, module: nn.Module, args: Any, kwargs: Any) -> Forward | None:
        model = self.log.models.see(module)
        if not model.params and not model.sensitive:
            return None
        where = outside_doctor(sys._getframe(1))
        while where.f_code.co_filename == _COMPILED and where.f_back is not None:  # torch.compile's __call__
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
            fed=model.calls <= _CHECKED and any(getattr(x, "requires_grad", False) for x in flat((args, kwargs))),
        )
        if module.training:
            forward.frozen_norms = model.frozen_norms
        elif model.dropouts:
            forward.dropouts = model.dropouts_in_eval()
        key = id(module), forward.site
        if frame is not None and key not in self._named and len(self._named) < _MOST_LINES:
            self._named.add(key)
            forward.names = _names(module, frame)
        if train_kind and not forward.grad:  # only one rule needs it
            forward.first = self._serial(args[0] if args else None)
        self.log.note_callers(forward.site)
        self.log.emit(forward)
        return forward

    @never_raises
    def _note_unused_graph(self, forward: Forward, result: Any) -> None:
        if not forward.again:
            self.log.passes.unused_graphs.built(result, call_lines(sys._getframe(3)))

    def _serial(self, argument: Any) -> int:
        """Return an int that identifies a tensor (by values if small and on the CPU), or a new int for a non-tensor."""
        if isinstance(argument, Tensor) and argument.device.type == "cpu" and argument.numel() < _MOST_HASHED_ELEMENTS:
            return hash((argument.shape, float(argument.detach().double().abs().sum())))
        number = next(self._numbers)
        return int(self._serials.setdefault(argument, number)) if isinstance(argument, Tensor) else number

    @never_raises
    def _mode_set(self, module: nn.Module, value: None, mode: bool = True) -> None:
        in_eval = self.log.models.in_eval
        in_eval.pop(module, None) if mode else in_eval.setdefault(module, True)
        self.log.note_callers(site := call_site())
        self.log.emit(Mode(site, id(module), bool(mode)))

    def _cleared(self, result: None, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        self.log.cleared(call_site(3), self.log.index.bits(module.parameters()))

    def _note_state(self, state: Any, owner: Any, *args: Any, destination: Any = None, **kwargs: Any) -> None:
        if args or destination is not None:  # the state of a submodule
            return
        site = call_site()
        for tensor in _plain_tensors(state):
            self._states[tensor] = tensor._version, self.log.steps, site

    def _before_load(self, owner: Any, state_dict: Any, *rest: Any, **kwargs: Any) -> None:
        """Record a load of tensors that are the object's own and have changed since ``state_dict()`` returned them."""
        loaded, log = list(_plain_tensors(state_dict)), self.log
        records = [self._states.get(tensor) for tensor in loaded]
        optimizes = isinstance(owner, Optimizer)
        parts = (owner.state, owner.param_groups) if optimizes else (*owner.parameters(), *owner.buffers())
        addresses = {tensor.data_ptr() for tensor in _plain_tensors(parts)}
        if not loaded or None in records or any(tensor.data_ptr() not in addresses for tensor in loaded):
            return
        for tensor, (version, steps, dict_site) in zip(loaded, records, strict=True):
            if tensor._version > version and log.steps > steps:
                load = log.models.uncopied.setdefault(call_site(), UncopiedLoad(type(owner).__name__, dict_site))
                load.times, load.steps = load.times + 1, log.steps - steps
                break
        for tensor, (*_, dict_site) in zip(loaded, records, strict=True):
            self._states[tensor] = tensor._version + 1, log.steps, dict_site  # the load increments each version once

    @never_raises
    def _registered(self, module: nn.Module, name: str, part: Any) -> None:
        if isinstance(part, nn.Parameter) and self.log.is_watched_thread():
            self.log.models.put(module, name, part, call_site())
        again = isinstance(part, nn.Module)  # a new submodule may replace a part of a model
        if (self.log.optimizers or not again) and self.log.is_watched_thread():
            for param in part.parameters() if again else [part]:
                if isinstance(param, Tensor):
                    site = outside_constructors(sys._getframe(2))
                    self.log.models.register(param, site, len(self.log.optimizers), again=again)


def _plain_tensors(value: Any) -> Iterator[Tensor]:
    for tensor in flat(value):
        if type(tensor) in (Tensor, nn.Parameter) and tensor.numel() and not (tensor.is_meta or tensor.is_inference()):
            yield tensor


def _names(module: nn.Module, frame: FrameType) -> tuple[str, ...]:
    local = variables(frame)
    owner = local.get("self")
    attributes = {**getattr(owner, "__dict__", {}), **getattr(owner, "_modules", {})}
    used = {name: frame.f_globals[name] for name in frame.f_code.co_names if name in frame.f_globals}
    named = {**used, **local, **{f"self.{name}": value for name, value in attributes.items()}}
    return tuple(name for name, value in named.items() if value is module)

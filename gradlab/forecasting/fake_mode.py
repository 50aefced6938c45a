"""Fake tensors: a shape and a dtype without memory, so that a model of any size can be run."""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .. import _torch
from .._frames import frames

_aten = torch.ops.aten
_ENTER_RECORD = _torch.enter_record.default
_STEP = _torch.profile_hook_step(lambda: None).__code__
"""What PyTorch puts around the ``step()`` of each class of optimizers."""
_FOUND_INF = "_gradlab_found_inf"
"""An attribute of the fake that would say whether a gradient was infinite."""
_CPU = torch.device("cpu")


def _norm(result: Any, args: Any) -> Any:
    """On a CPU statistics are kept in float32 if the weights are, whatever the input is."""
    output, *statistics = result
    others = (a for a in args[1:] if isinstance(a, Tensor))
    if output.dtype == torch.float32 or not any(a.dtype == torch.float32 for a in others):
        return result
    return (output, *(torch.empty_like(each, dtype=torch.float32) for each in statistics))


def _wide_norm(result: Any, args: Any) -> Any:
    """On a GPU statistics of a half-wide input are kept in float32."""
    output, *statistics = result
    return (output, *(t if t.dtype == torch.float64 else t.float() for t in statistics))


def _group_norm_backward(result: Any, args: Any) -> Any:
    """The input's gradient is of the input's type."""
    first, *rest = result
    if first is None or first.dtype == args[1].dtype:
        return result
    return (torch.empty_like(first, dtype=args[1].dtype), *rest)


def _loss(result: Any, args: Any, reduction: int = 2) -> Any:
    """The mean is written into the memory that all the differences took, and holds on to it."""
    if len(args) > reduction and args[reduction] == 0:  # reduction="none"
        return result
    return torch.empty(torch.broadcast_shapes(args[0].shape, args[1].shape), dtype=result.dtype).resize_(())


CPU_KERNEL_FIXES: dict[Any, Callable[[Any, Any], Any]] = {
    _aten.native_batch_norm.default: _norm,
    _aten.native_layer_norm.default: _norm,
    _aten.native_group_norm.default: _norm,
    _aten.native_group_norm_backward.default: _group_norm_backward,
    _aten.mse_loss.default: _loss,
    _aten.smooth_l1_loss.default: _loss,
    _aten.soft_margin_loss.default: _loss,
    _aten.binary_cross_entropy.default: functools.partial(_loss, reduction=3),
}
"""What to make of an operation's fake result, given its arguments."""
CUDA_KERNEL_FIXES = CPU_KERNEL_FIXES | {
    _aten.log_sigmoid_forward.default: lambda result, args: (result[0], torch.empty(0, dtype=result[1].dtype)),
    _aten.native_batch_norm.default: _wide_norm,
    _aten.native_layer_norm.default: _wide_norm,
}
"""The same where the fakes stand for tensors on a GPU."""


# Without what PyTorch puts around it, to say at each call that this is not to be compiled: a tenth of a forecast.
_dispatch = getattr(_torch.FakeTensorMode.__torch_dispatch__, "__wrapped__", _torch.FakeTensorMode.__torch_dispatch__)


class FakeTensors(_torch.FakeTensorMode):
    """While it is entered, new tensors are fake ones on the CPU; real ones that an operation reads count as fake."""

    def __init__(self, *, cuda: bool = False) -> None:
        """Take real tensors as arguments, too; ``cuda`` says that the fakes stand for tensors on a GPU."""
        super().__init__(allow_non_fake_inputs=True)
        self._fixes = CUDA_KERNEL_FIXES if cuda else CPU_KERNEL_FIXES
        self.calls = 0
        self.on_calls: Callable[[int], None] | None = None
        """Called now and then with the number of operations that have run."""
        self.on_step: Callable[[torch.optim.Optimizer], None] = lambda optimizer: None
        """Called with each optimizer that begins a step."""
        self._fakes: dict[int, tuple[Tensor, Tensor]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Leave the method below as it is, see ``_dispatch``."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return what an operation would return."""
        if func is torch.ops.prim.device.default:  # a question, not an operation, and a third of all calls
            return args[0].fake_device
        if func is _aten._local_scalar_dense.default and hasattr(args[0], _FOUND_INF):  # a GradScaler asks, and steps
            return 0.0
        if func is _aten._amp_foreach_non_finite_check_and_unscale_.default:
            setattr(args[1], _FOUND_INF, True)
        elif func is _ENTER_RECORD and args[0].startswith("Optimizer.step#") and (optimizer := _stepping()) is not None:
            self.on_step(optimizer)
        self.calls += 1
        if self.on_calls is not None and not self.calls % 500:
            self.on_calls(self.calls)
        result = _dispatch(self, func, types, args, kwargs or {})
        if func not in self._fixes:
            return result
        with self:  # PyTorch takes a mode off while it is asked, and what is made then would be real
            return self._fixes[func](result, args)

    def fake(self, tensor: Tensor) -> Tensor:
        """Return a fake of a tensor on the CPU, wherever it is; views and tied ones share their storage as before."""
        if tensor.device.type == "cpu" and not isinstance(tensor, _torch.FakeTensor):
            if not tensor.is_leaf:  # its graph is the reader's
                return self.from_tensor(tensor.detach()).requires_grad_()
            result: Tensor = self.from_tensor(tensor)
            result.grad = None
            return result
        with self:  # a meta tensor, a fake of another mode, or one on a GPU
            empty = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
            if isinstance(tensor, nn.Parameter):
                return nn.Parameter(empty, requires_grad=tensor.requires_grad)
            return empty.requires_grad_(tensor.requires_grad)

    def has_stand_in(self, tensor: Tensor) -> bool:
        """Tell whether a fake stands for this tensor."""
        return id(tensor) in self._fakes

    def stand_in(self, tensor: Tensor) -> Tensor:
        """Return the one fake that stands for a tensor of the reader's."""
        if id(tensor) not in self._fakes:
            self._fakes[id(tensor)] = tensor, self.fake(tensor)
        return self._fakes[id(tensor)][1]

    def convert(self, model: nn.Module, dtype: torch.dtype) -> None:
        """Give the floating-point parameters and buffers of a fake model another type; tied ones stay tied."""
        converted: dict[int, Tensor] = {}
        tables: list[dict[str, Any]] = [t for module in model.modules() for t in (module._parameters, module._buffers)]
        for table in tables:
            for name, tensor in table.items():
                if tensor is not None and tensor.is_floating_point():
                    if id(tensor) not in converted:
                        converted[id(tensor)] = self._converted(tensor, dtype)
                    table[name] = converted[id(tensor)]

    def _converted(self, before: Tensor, dtype: torch.dtype) -> Tensor:
        """Return a fake of another type with the hooks of the one before, in whose place it stands from now on."""
        with self, torch.no_grad():
            after = before.to(dtype)
            if isinstance(before, nn.Parameter):
                after = nn.Parameter(after, before.requires_grad)
        if after is not before:
            _carry_hooks(before, after)
        self._fakes |= {key: (real, after) for key, (real, fake) in self._fakes.items() if fake is before}
        return after

    def copy(self, model: nn.Module) -> nn.Module:
        """Return a copy of a model on fake tensors, with its hooks; the model itself is neither copied nor changed."""
        tensors = [*model.parameters(), *model.buffers()]
        memo = {id(tensor): self.stand_in(tensor) for tensor in tensors}
        for tensor in tensors:
            _carry_hooks(tensor, memo[id(tensor)])
        with _CopyAsFake(self):
            return copy.deepcopy(model, memo)


def _stepping() -> torch.optim.Optimizer | None:
    """Return the optimizer whose ``step()`` runs on this thread, if any.

    A hook on all optimizers would be called on all threads, and one that steps while it is taken away fails.
    """
    stepping: Iterator[Any] = (frame.f_locals["self"] for frame in frames(sys._getframe(2)) if frame.f_code is _STEP)
    return next(stepping, None)


def _carry_hooks(tensor: Tensor, fake: Tensor) -> None:
    """Give a fake the hooks of the tensor that it stands for."""
    for hook in (tensor._backward_hooks or {}).values():
        fake.register_hook(hook)
    for hook in (getattr(tensor, "_post_accumulate_grad_hooks", None) or {}).values():
        fake.register_post_accumulate_grad_hook(hook)


class _CopyAsFake(TorchFunctionMode):
    """Copies of tensors that a model keeps as plain attributes are fake, too."""

    def __init__(self, mode: FakeTensors) -> None:
        super().__init__()
        self._mode = mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.__deepcopy__:
            return self._mode.stand_in(args[0])
        return func(*args, **(kwargs or {}))


class ReplaceRealTensors(TorchFunctionMode):
    """Puts its fake in the place of each tensor that wants a gradient and that the reader's code finds by itself.

    Functions keep what they refer to: a closure or a hook may hold a part of the model, and a function a global
    parameter. Autograd would follow them, and leave fake gradients where the reader has real ones.
    """

    def __init__(self, mode: FakeTensors) -> None:
        """Take the fakes from ``mode``."""
        super().__init__()
        self._mode = mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function with fakes."""
        kwargs = kwargs or {}
        if func is Tensor.cuda:
            return args[0]
        if func is Tensor.to:
            args = (args[0], *(_CPU if _is_cuda(a) else a for a in args[1:]))
        if _is_cuda(kwargs.get("device")):
            kwargs = {**kwargs, "device": _CPU}
        return func(*[self._replaced(a) for a in args], **{name: self._replaced(a) for name, a in kwargs.items()})

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            if isinstance(value, _torch.FakeTensor):
                return value
            return self._mode.stand_in(value) if value.requires_grad or self._mode.has_stand_in(value) else value
        if type(value) in (list, tuple) and any(isinstance(each, Tensor) for each in value):
            return type(value)(self._replaced(each) for each in value)
        return value


def _is_cuda(device: Any) -> bool:
    return isinstance(device, (str, torch.device)) and str(device).startswith("cuda")


@contextmanager
def restoring_module(model: nn.Module) -> Iterator[None]:
    """Put back what the block changes in a model's modules: attributes, parameters, buffers and hooks."""
    attributes = [(vars(module), vars(module).copy()) for module in model.modules()]
    tables = [(table, table.copy()) for _, before in attributes for table in before.values() if isinstance(table, dict)]
    try:
        yield
    finally:
        for table, before in (*attributes, *tables):
            if table.keys() != before.keys() or any(table[key] is not before[key] for key in before):
                table.clear()
                table.update(before)

"""Fake tensors, which have a shape and a dtype but no memory, so that a model of any size can be run."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .. import _torch

_aten = torch.ops.aten
_PAGE_BYTES = 4096
_FOUND_INF = "_gradlab_found_inf"  # an attribute that marks a GradScaler's fake ``found_inf``, which then reads as 0


def _norm(result: Any, args: Any) -> Any:
    """Return a norm's result with float32 statistics if a weight is float32, even for a 16-bit input, as on a CPU."""
    output, *statistics = result
    others = (a for a in args[1:] if isinstance(a, Tensor))
    if output.dtype == torch.float32 or not any(a.dtype == torch.float32 for a in others):
        return result
    return (output, *(torch.empty_like(each, dtype=torch.float32) for each in statistics))


def _wide_norm(result: Any, args: Any) -> Any:
    """Return a norm's result with float32 statistics, even for a 16-bit input, as GPU kernels do."""
    output, *statistics = result
    return (output, *(t if t.dtype == torch.float64 else t.float() for t in statistics))


def _group_norm_backward(result: Any, args: Any) -> Any:
    """Return the gradients of a group norm, with the input's gradient in the dtype of the input."""
    first, *rest = result
    if first is None or first.dtype == args[1].dtype:
        return result
    return (torch.empty_like(first, dtype=args[1].dtype), *rest)


def _loss(result: Any, args: Any, reduction: int = 2) -> Any:
    """Return a reduced loss whose storage is as large as that of the unreduced loss, as in the kernels."""
    if len(args) > reduction and args[reduction] == 0:  # reduction="none"
        return result
    return torch.empty(torch.broadcast_shapes(args[0].shape, args[1].shape), dtype=result.dtype).resize_(())


def _lstm_layer(result: Any, args: Any) -> Any:
    """Return an LSTM layer's result with the workspace that the layer saves for backward, which the fake result lacks.

    The workspace has the regions of oneDNN's ``set_workspace_sizes`` and ``set_offsets``, each rounded up to pages
    (``src/cpu/rnn/rnn_utils.hpp``, ``rnn_utils.cpp``). Rows of matrices are padded to cache lines.
    """
    x, hidden, cell, trains = args[0], args[5], args[6], args[15]
    if not trains:
        return result
    steps, rows, features = x.shape
    width, size = hidden.shape[-1], x.itemsize
    widest = max(features, width)

    def line_bytes(elements: int, itemsize: int) -> int:
        padded = -(-elements * itemsize // 64) * 64 // itemsize
        return itemsize * (padded if padded % 256 else padded + 64 // itemsize)

    once = [line_bytes(4 * width, size), line_bytes(width, size)]  # gates, outputs
    states, gradients = [line_bytes(widest, size), width * cell.itemsize], [*[line_bytes(widest, 4)] * 2, width * 4]
    regions = [steps * rows * each for each in once] + [2 * (steps + 1) * rows * each for each in states + gradients]
    pages = sum(-(-region // _PAGE_BYTES) for region in regions)
    return (*result[:3], torch.empty(pages * _PAGE_BYTES, dtype=torch.uint8))


CPU_KERNEL_FIXES: dict[Any, Callable[[Any, Any], Any]] = {
    _aten.native_batch_norm.default: _norm,
    _aten.native_layer_norm.default: _norm,
    _aten.native_group_norm.default: _norm,
    _aten.native_group_norm_backward.default: _group_norm_backward,
    _aten.mkldnn_rnn_layer.default: _lstm_layer,
    _aten.mse_loss.default: _loss,
    _aten.smooth_l1_loss.default: _loss,
    _aten.soft_margin_loss.default: _loss,
    _aten.binary_cross_entropy.default: functools.partial(_loss, reduction=3),
}
"""Operation -> function that corrects the operation's fake result, given the result and the arguments."""
CUDA_KERNEL_FIXES = CPU_KERNEL_FIXES | {
    _aten.log_sigmoid_forward.default: lambda result, args: (result[0], torch.empty(0, dtype=result[1].dtype)),
    _aten.native_batch_norm.default: _wide_norm,
    _aten.native_layer_norm.default: _wide_norm,
}
"""The same mapping for fakes that stand for tensors on a GPU."""

# PyTorch's wrapper, which disables compilation at each call, would take a tenth of a forecast's time.
_dispatch = getattr(_torch.FakeTensorMode.__torch_dispatch__, "__wrapped__", _torch.FakeTensorMode.__torch_dispatch__)


class FakeTensors(_torch.FakeTensorMode):
    """A mode in which new tensors are fakes on the CPU, and operations accept real tensors as if they were fakes."""

    def __init__(self, *, cuda: bool = False) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self._fixes = CUDA_KERNEL_FIXES if cuda else CPU_KERNEL_FIXES
        self.fakes: dict[int, tuple[Tensor, Tensor]] = {}  # id of a user's tensor -> the tensor and its fake

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, which avoids PyTorch's wrapper around ``__torch_dispatch__``, as ``_dispatch`` does."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.prim.device.default:  # a query, not an operation, and a third of all calls
            return args[0].fake_device
        if func is _aten._local_scalar_dense.default and hasattr(args[0], _FOUND_INF):  # read by a GradScaler
            return 0.0
        if func is _aten._amp_foreach_non_finite_check_and_unscale_.default:
            setattr(args[1], _FOUND_INF, True)
        result = _dispatch(self, func, types, args, kwargs or {})
        if func not in self._fixes:
            return result
        with self:  # PyTorch disables the mode during a dispatch, so new tensors would be real
            return self._fixes[func](result, args)

    def fake(self, tensor: Tensor) -> Tensor:
        """Return a fake of any tensor, on the CPU; if real CPU tensors share a storage, their fakes also share one."""
        if tensor.device.type == "cpu" and not isinstance(tensor, _torch.FakeTensor):
            if not tensor.is_leaf:  # the fake must not join the user's graph
                return self.from_tensor(tensor.detach()).requires_grad_()
            result: Tensor = self.from_tensor(tensor)
            result.grad = None
            return result
        with self:  # for a meta tensor, a fake of another mode, or a tensor on a GPU
            empty = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
            if isinstance(tensor, nn.Parameter):
                return nn.Parameter(empty, requires_grad=tensor.requires_grad)
            return empty.requires_grad_(tensor.requires_grad)

    def stand_in(self, tensor: Tensor) -> Tensor:
        """Return the fake of the user's ``tensor``, the same fake at every call."""
        if id(tensor) not in self.fakes:
            self.fakes[id(tensor)] = tensor, self.fake(tensor)
        return self.fakes[id(tensor)][1]

    def convert(self, model: nn.Module, dtype: torch.dtype) -> None:
        """Convert the floating-point parameters and buffers of a fake model to ``dtype``, keeping the same objects."""
        with self:
            for tensor in (*model.parameters(), *model.buffers()):
                if tensor.is_floating_point():
                    tensor.data = tensor.data.to(dtype)

    def copy(self, model: nn.Module) -> nn.Module:
        """Return a copy of ``model`` with its hooks and with fake parameters and buffers; ``model`` is not changed."""
        tensors = [*model.parameters(), *model.buffers()]
        memo = {id(tensor): self.stand_in(tensor) for tensor in tensors}
        for tensor in tensors:
            for hook in (tensor._backward_hooks or {}).values():
                memo[id(tensor)].register_hook(hook)
        with ReplaceRealTensors(self):
            return copy.deepcopy(model, memo)


class ReplaceRealTensors(TorchFunctionMode):
    """A mode in which torch functions get a fake in place of a real tensor that requires grad or has a fake already.

    A closure or a hook may refer to a part of the real model, and a function may use a global parameter. Autograd would
    follow these tensors and write fake gradients to the user's ``.grad``. A deep copy of a real tensor, such as a plain
    attribute of a model, is also replaced with the tensor's fake.
    """

    def __init__(self, mode: FakeTensors) -> None:
        super().__init__()
        self._mode = mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.__deepcopy__ and not isinstance(args[0], _torch.FakeTensor):
            return self._mode.stand_in(args[0])
        return func(*map(self._replaced, args), **{name: self._replaced(a) for name, a in (kwargs or {}).items()})

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, Tensor) and not isinstance(value, _torch.FakeTensor):
            return self._mode.stand_in(value) if value.requires_grad or id(value) in self._mode.fakes else value
        if type(value) in (list, tuple) and any(isinstance(each, Tensor) for each in value):
            return type(value)(self._replaced(each) for each in value)
        return value


@contextmanager
def restoring_module(model: nn.Module) -> Iterator[None]:
    """Restore the attributes, parameters, buffers and hooks of a model's modules after the block."""
    attributes = [(vars(module), vars(module).copy()) for module in model.modules()]
    tables = [(table, table.copy()) for _, before in attributes for table in before.values() if isinstance(table, dict)]
    try:
        yield
    finally:
        for table, before in (*attributes, *tables):
            if table.keys() != before.keys() or any(table[key] is not before[key] for key in before):
                table.clear()
                table.update(before)

"""Fake tensors: a shape and a dtype without memory, so that a model of any size can be run."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .. import _torch

_aten = torch.ops.aten


def _norm(result: Any, args: Any) -> Any:
    """Statistics are kept in float32 if the weights are, whatever the input is."""
    output, *statistics = result
    others = (a for a in args[1:] if isinstance(a, Tensor))
    if output.dtype == torch.float32 or not any(a.dtype == torch.float32 for a in others):
        return result
    return (output, *(torch.empty_like(each, dtype=torch.float32) for each in statistics))


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


class CpuFakeTensorMode(_torch.FakeTensorMode):
    """While it is entered, new tensors are fake ones on the CPU; real ones that an operation reads count as fake."""

    def __init__(self) -> None:
        """Take real tensors as arguments, too: models keep constants where nobody finds them."""
        super().__init__(allow_non_fake_inputs=True)
        self.calls = 0
        self.on_calls: Callable[[int], None] | None = None
        """Called now and then with the number of operations that have run."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return what an operation would return on a CPU."""
        if func is torch.ops.prim.device.default:  # a question, not an operation, and a third of all calls
            return args[0].fake_device
        self.calls += 1
        if self.on_calls is not None and not self.calls % 500:
            self.on_calls(self.calls)
        result = super().__torch_dispatch__(func, types, args, kwargs or {})
        return CPU_KERNEL_FIXES[func](result, args) if func in CPU_KERNEL_FIXES else result

    def fake(self, tensor: Tensor) -> Tensor:
        """Return a fake of a tensor on the CPU, wherever it is; views and tied ones share their storage as before."""
        if tensor.device.type == "cpu" and not isinstance(tensor, _torch.FakeTensor):
            result: Tensor = self.from_tensor(tensor)
            result.grad = None
            return result
        with self:  # a meta tensor, a fake of another mode, or one on a GPU
            made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
            if isinstance(tensor, nn.Parameter):
                return nn.Parameter(made, requires_grad=tensor.requires_grad)
            return made.requires_grad_(tensor.requires_grad)

    def copy(self, model: nn.Module) -> nn.Module:
        """Return a copy of a model on fake tensors; the model's own memory is neither copied nor changed."""
        memo = {id(t): self.fake(t) for t in (*model.parameters(), *model.buffers())}
        with _CopyAsFake(self):
            return copy.deepcopy(model, memo)


class _CopyAsFake(TorchFunctionMode):
    """Copies of tensors that a model keeps as plain attributes are fake, too."""

    def __init__(self, mode: CpuFakeTensorMode) -> None:
        super().__init__()
        self._mode = mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.__deepcopy__:
            tensor, memo = args
            if id(tensor) not in memo:
                memo[id(tensor)] = self._mode.fake(tensor)
            return memo[id(tensor)]
        return func(*args, **(kwargs or {}))

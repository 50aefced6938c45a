"""Fakes: tensors with a shape and a dtype but without memory, so that a model of any size can be run.

PyTorch's FakeTensorMode, with short ways for the few operations that a large model is made of: it spends most of its
time on looking up what it already knows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, in_kernel_invocation_manager
from torch.overrides import TorchFunctionMode

from .quirks import QUIRKS

_aten = torch.ops.aten
_CPU = torch.device("cpu")
_DEVICE = torch.ops.prim.device.default
# These change their first argument in place and give it back, so there is nothing to work out.
_IN_PLACE = {
    *(_aten.add_.Tensor, _aten.mul_.Tensor, _aten.lerp_.Scalar, _aten.addcmul_.default, _aten.addcdiv_.default),
    *(_aten.zero_.default, _aten.mul_.Scalar),
}
_ALL_IN_PLACE = {
    *(_aten._foreach_mul_.Scalar, _aten._foreach_lerp_.Scalar, _aten._foreach_addcmul_.Scalar),
    *(_aten._foreach_div_.ScalarList, _aten._foreach_add_.Scalar, _aten._foreach_add_.List),
    *(_aten._foreach_addcdiv_.ScalarList, _aten._foreach_zero_.default),
}
# These give back a view of their first argument: PyTorch's own shape functions say which.
_VIEWS = {
    *(_aten.t.default, _aten.view.default, _aten._unsafe_view.default, _aten.transpose.int, _aten.expand.default),
    *(_aten.slice.Tensor, _aten.detach.default),
}
# These make one new tensor, whose shape depends on nothing but the shapes of what they are given.
_NEW = {
    *(_aten.mm.default, _aten.addmm.default, _aten.add.Tensor, _aten.mul.Tensor, _aten.mul.Scalar, _aten.div.Tensor),
    *(_aten.div.Scalar, _aten.neg.default, _aten.sqrt.default, _aten.rsqrt.default, _aten.pow.Tensor_Scalar),
    *(_aten.mean.dim, _aten.sum.dim_IntList, _aten.silu.default, _aten.silu_backward.default, _aten.gelu.default),
    *(_aten.gelu_backward.default, _aten._to_copy.default),
}


class Fakes(FakeTensorMode):
    """While it is entered, new tensors are fake ones on the CPU; real ones that an operation reads count as fake."""

    def __init__(self) -> None:
        """Take real tensors as arguments, too: models keep constants where nobody finds them."""
        super().__init__(allow_non_fake_inputs=True)
        self._made: dict[Any, tuple[Any, Any, Any]] = {}
        self.calls = 0
        self.on_calls: Callable[[int], None] | None = None
        """Told now and then how many operations have run."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Leave ``__torch_dispatch__`` as it is: nobody compiles in here, and the wrapper costs more than the work."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Say what an operation would return."""
        if func is _DEVICE:
            return args[0].fake_device
        self.calls += 1
        if self.on_calls is not None and not self.calls % 500:
            self.on_calls(self.calls)
        if func in _IN_PLACE:
            if self._plain(args) and all(a.shape == args[0].shape for a in args if isinstance(a, Tensor)):
                return args[0]
        elif func in _VIEWS:
            if self._plain(args):
                with in_kernel_invocation_manager(self):
                    result = func(*args, **(kwargs or {}))
                return FakeTensor(self, result, _CPU)
        elif func in _ALL_IN_PLACE:
            if all(self._plain(each) for each in args if isinstance(each, (list, tuple))):
                return None
        elif func is _aten._foreach_sqrt.default and self._plain(args[0]):
            return [self._new(_aten.sqrt.default, types, (each,), {}) for each in args[0]]
        elif func in _NEW and self._plain(args):
            return self._new(func, types, args, kwargs or {})
        result = super().__torch_dispatch__(func, types, args, kwargs or {})
        return QUIRKS[func](result, args) if func in QUIRKS else result

    def _new(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Return what an operation makes, from memory if it was given the like before."""
        key = (func, *map(_likeness, args), *((name, _likeness(value)) for name, value in kwargs.items()))
        if key in self._made:
            shape, stride, dtype = self._made[key]
            return FakeTensor(self, torch.empty_strided(shape, stride, dtype=dtype, device="meta"), _CPU)
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if type(result) is FakeTensor and result.fake_device == _CPU and result.constant is None:
            self._made[key] = (result.shape, result.stride(), result.dtype)
        return result

    def _plain(self, args: Any) -> bool:
        """Whether all tensors are fakes of ours on the CPU, of which no value is known."""
        return all(
            type(a) is FakeTensor and a.constant is None and a.fake_mode is self and a.fake_device == _CPU
            for a in args
            if isinstance(a, Tensor)
        )

    def fake(self, tensor: Tensor) -> Tensor:
        """Return a fake of a tensor on the CPU, wherever it is; views and tied ones share their storage as before."""
        if tensor.device.type == "cpu" and not isinstance(tensor, FakeTensor):
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

    def __init__(self, fakes: Fakes) -> None:
        super().__init__()
        self._fakes = fakes

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.__deepcopy__:
            tensor, memo = args
            if id(tensor) not in memo:
                memo[id(tensor)] = self._fakes.fake(tensor)
            return memo[id(tensor)]
        return func(*args, **(kwargs or {}))


def _likeness(value: Any) -> Any:
    """What of an argument decides the shape of a result: numbers with their type, since 1 and 1.0 promote otherwise."""
    if isinstance(value, Tensor):
        return value.shape, value.stride(), value.dtype
    return (type(value), tuple(value)) if isinstance(value, (list, tuple)) else (type(value), value)

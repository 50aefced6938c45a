"""Quirks: where a kernel of the CPU makes other tensors than PyTorch's fake ones say, found by comparing the two."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

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
